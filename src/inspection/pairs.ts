// By what names people keep a key beside its certificate.

const extensions = ['.crt', '.pem', '.cer', '.cert', '.der']

/** Names that a whole file name represents: Let's Encrypt's and the commonest of all. */
const wholeNames: Readonly<Record<string, readonly string[]>> = {
  'cert.pem': ['key.pem', 'privkey.pem', 'cert.key'],
  'fullchain.pem': ['privkey.pem'],
  'cert.crt': ['key.key', 'cert.key'],
}

/** Returns the names under which the key of this certificate file would be kept, the likeliest first. */
export function keyNameBeside(name: string): readonly string[] {
  const dot = name.lastIndexOf('.')
  const extension = dot === -1 ? '' : name.slice(dot)
  if (!extensions.includes(extension)) return []
  const stem = name.slice(0, dot)
  return [
    ...(wholeNames[name] ?? []),
    `${stem}.key`,
    `${stem}-key.pem`,
    `${stem}.key.pem`,
    `${stem}-key${extension}`,
  ]
}
