/** A kind of object, or one object, as the API server's URLs name it. */
export interface Resource {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  /** Served by older releases: where a list in `version` is refused, discovery says which of them the API server serves. */
  readonly olderVersions?: readonly string[]
  /** The plural, "certificatesigningrequests". */
  readonly resource: string
  readonly namespace?: string
  readonly name?: string
  /** "approval", "status". */
  readonly subresource?: string
}

/** Returns the path of the URL. Names are escaped: what a server said, or an operator typed, reaches no other object. */
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

// "." and ".." would be taken for steps in the path even when they are escaped.
function escaped(part: string): string {
  return part === '.' || part === '..' ? part.replaceAll('.', '%252E') : encodeURIComponent(part)
}

/** "certificatesigningrequests.certificates.k8s.io web in namespace shop", for messages. */
export function describeResource({ group, resource, subresource, namespace, name }: Resource): string {
  const kind = `${group === '' ? resource : `${resource}.${group}`}${subresource === undefined ? '' : `/${subresource}`}`
  return `${kind}${name === undefined ? '' : ` ${JSON.stringify(name)}`}${namespace === undefined ? '' : ` in namespace ${namespace}`}`
}
