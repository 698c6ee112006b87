/**
 * Returns host and port of a URI (RFC 3986 section 3.2) as Go's net/url hands them on: escapes undone, brackets kept, no user.
 * Empty where there is no authority, as in "urn:x" and "mailto:a@b". The text has passed `uriDefect`.
 */
export function uriHost(text: string): string {
  const [reference = ''] = text.split('#', 1)
  const scheme = /^[A-Za-z][A-Za-z0-9+.-]*:/.exec(reference)?.[0] ?? ''
  const [rest = ''] = reference.slice(scheme.length).split('?', 1)
  // Without a scheme, three slashes are a path.
  if (!rest.startsWith('//') || (scheme === '' && rest.startsWith('///'))) return ''
  const [authority = ''] = rest.slice(2).split('/', 1)
  const host = authority.slice(authority.lastIndexOf('@') + 1)
  return host.replaceAll(/%([0-9A-Fa-f]{2})/g, (_escape, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
}
