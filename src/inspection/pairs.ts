// Usual file names for a key next to its certificate.

const extensions = ['.crt', '.pem', '.cer', '.cert', '.der']

/** Names that are a whole file name: Let's Encrypt's and the most common one. */
const wholeNames: Readonly<Record<string, readonly string[]>> = {
  'cert.pem': ['key.pem', 'privkey.pem', 'cert.key'],
  'fullchain.pem': ['privkey.pem'],
  'cert.crt': ['key.key', 'cert.key'],
}

/** Returns the usual names for the key of this certificate file, the likeliest first. */
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
