const tokenShapes: readonly RegExp[] = [
  // JSON Web Tokens, as used by service accounts.
  /eyJ[\w-]{8,}/,
  // Bootstrap tokens.
  /(?:^|[^a-z0-9])[a-z0-9]{6}\.[a-z0-9]{16}(?:$|[^a-z0-9])/,
  // Long runs of the characters in keys, hashes and passwords. Names of hosts and files contain dots and dashes.
  /[A-Za-z0-9+/_]{40,}/,
  /\b(?:ghp|gho|glpat|xox[abp]|AKIA|sk)[-_A-Z0-9][\w-]{12,}/,
]

/** True for text that may be a token, a key or a password. It is therefore not printed. */
export function isSecretLike(text: string): boolean {
  return tokenShapes.some((shape) => shape.test(text))
}
