"""An S3 server of `tests/servers` for tests: its keys as the backend of fsspec finds them, and a bucket."""

from __future__ import annotations

import json
import uuid

import pytest

s3fs = pytest.importorskip("s3fs", reason="pip install -r tests/stores/requirements.txt")


def keys(server, user="owner"):
    """Return the environment in which the backend of S3 finds its credentials."""
    found = server["users"][user]
    return {
        "AWS_ACCESS_KEY_ID": found["access_key"],
        "AWS_SECRET_ACCESS_KEY": found["secret_key"],
        "AWS_ENDPOINT_URL": server["url"],
        "AWS_DEFAULT_REGION": server["region"],
        "AWS_EC2_METADATA_DISABLED": "true",
    }


class Bucket:
    """A bucket of a server, as its owner sees it."""

    def __init__(self, server):
        self.server, self.name = server, f"b{uuid.uuid4().hex[:12]}"
        owner = server["users"]["owner"]
        client = {"region_name": server["region"]}
        self.files = s3fs.S3FileSystem(
            key=owner["access_key"], secret=owner["secret_key"], endpoint_url=server["url"], client_kwargs=client,
            use_listings_cache=False,
        )  # fmt: skip
        self.make(self.name)

    def make(self, name):
        self.files.call_s3("create_bucket", Bucket=name)

    def names(self, folder="orders"):
        try:
            return sorted(path.rpartition("/")[2] for path in self.files.ls(f"{self.name}/{folder}", refresh=True))
        except FileNotFoundError:
            return []

    def parts(self, folder="orders"):
        return [name for name in self.names(folder) if name.startswith("part-")]

    def digests(self, folder="orders"):
        told = json.loads(self.files.cat_file(f"{self.name}/{folder}/manifest.json"))
        found = {part["file"]: part["sha256"] for part in told["parts"]}
        assert self.names(folder) == ["manifest.json", *sorted(found)]
        assert self.uploads() == []
        return found

    def uploads(self):
        return self.files.list_multipart_uploads(self.name)

    def let_read(self, user):
        """Allow a user to list and to read."""
        statement = {
            "Effect": "Allow", "Principal": {"AWS": [user]}, "Action": ["s3:GetObject", "s3:ListBucket"],
            "Resource": [f"arn:aws:s3:::{self.name}", f"arn:aws:s3:::{self.name}/*"],
        }  # fmt: skip
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        self.files.call_s3("put_bucket_policy", Bucket=self.name, Policy=policy)
