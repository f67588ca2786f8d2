"""Every request and answer between the page and the server; `page/messages.ts` is generated from it.

Internal: the stable interface is the Python API. The page sends each request as a POST with a JSON body to ``/api/…``
and, except for ``enter``, with the secret in the header ``Dragoman-Secret``. `ROUTES` at the end lists them. A failure
is `Failed` with a status of 400 or more:

- 400 the body is not what the route takes; 404 there is no such route or id; 413 it is too large; 429 too many at once
- 401 the secret is missing or expired: the page asks the person to open the workbench again
- 403 the Host or Origin header names another site
- 422 a DragomanError; `RequestFailure.code` says which

``GET /api/events`` (same header, read with fetch) answers with ``text/event-stream``; the ``data`` of each message is
one `ServerEvent`. ``GET /download/TICKET`` streams an export; the browser navigates to it, so it has no header. A
ticket holds once, for 30 seconds. ``POST /upload?name=NAME`` (same header, ``application/octet-stream``) takes a file
to import, whose bytes are the body, and answers with `imports.Uploaded`.

**Cells.** A cell is null, true, false or a string, which stands for that text, or a pair ``[tag, text]``:

- ``integer``, ``decimal``: a number with its digits as the server sent them, of any length; never a JSON number
- ``json``: an array or object, as JSON text with its digits and key order; ``[]`` and ``{}`` are empty ones
- ``bytes``: a binary value as base64
- ``cut-text``, ``cut-json``, ``cut-bytes``: only the beginning of such a value; ``cell`` fetches all of it
- ``missing``: the row has no such value, where the driver tells that apart from null; the text is empty

A value that the page sends takes the same form, without the cut tags.

**Rows.** Which rows a request is about is a `dragoman.RowSelection`, in the JSON that the address of a grid holds, too.

**Keys.** `GridRow.key` is a text that only the server reads; the page sends it back unchanged. `GridRow.id` is for
people.
"""
