const tokenShapes: readonly RegExp[] = [
  // JSON Web Tokens, as service accounts have them.
  /eyJ[\w-]{8,}/,
  // Bootstrap tokens.
  /(?:^|[^a-z0-9])[a-z0-9]{6}\.[a-z0-9]{16}(?:$|[^a-z0-9])/,
  // Long runs of what keys, hashes and passwords are written in; names of hosts and files are broken by dots and dashes.
  /[A-Za-z0-9+/_]{40,}/,
  /\b(?:ghp|gho|glpat|xox[abp]|AKIA|sk)[-_A-Z0-9][\w-]{12,}/,
]

/** True for text that may be a token, a key or a password, and is therefore not printed again. */
export function isSecretLike(text: string): boolean {
  return tokenShapes.some((shape) => shape.test(text))
}
