/** What the page uses of the browser's trusted types, which TypeScript's library does not know. */
declare var trustedTypes:
  | { createPolicy(name: string, rules: { createScriptURL(): string }): { createScriptURL(text: string): unknown } }
  | undefined;
