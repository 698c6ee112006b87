/** A kind of object, or one object, with the names in the API server's URLs. */
export interface Resource {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  /**
   * Versions that older releases serve. If the API server refuses a list in `version`, discovery shows which of them it serves.
   */
  readonly olderVersions?: readonly string[]
  /** The plural name, for example "certificatesigningrequests". */
  readonly resource: string
  readonly namespace?: string
  readonly name?: string
  /** For example "approval" or "status". */
  readonly subresource?: string
}

/** Returns the path of the URL. Names are escaped, so that input from a server or operator cannot reach another object. */
export function pathOf({ group, version, resource, namespace, name, subresource }: Resource): string {
  const parts = [
    ...(group === '' ? ['api'] : ['apis', group]),
    version,
    ...(namespace === undefined ? [] : ['namespaces', namespace]),
    resource,
    ...(name === undefined ? [] : [name]),
    ...(subresource === undefined ? [] : [subresource]),
  ]
  return `/${parts.map(escaped).join('/')}`
}

// "." and ".." would be path segments even when they are escaped.
function escaped(part: string): string {
  return part === '.' || part === '..' ? part.replaceAll('.', '%252E') : encodeURIComponent(part)
}

/** Returns a description for messages: "certificatesigningrequests.certificates.k8s.io web in namespace shop". */
export function describeResource({ group, resource, subresource, namespace, name }: Resource): string {
  const kind = `${group === '' ? resource : `${resource}.${group}`}${subresource === undefined ? '' : `/${subresource}`}`
  return `${kind}${name === undefined ? '' : ` ${JSON.stringify(name)}`}${namespace === undefined ? '' : ` in namespace ${namespace}`}`
}
