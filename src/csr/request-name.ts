import { quoted } from './quoting.ts'

// The API server accepts only a name that is one path segment, so a slash ends the kind that kubectl prints before it.
const kind = /^(?:csr|certificatesigningrequests?)(?:\.(?:v1\.)?certificates\.k8s\.io)?\//i

/** Returns the name of an object as the operator typed it: NAME, csr/NAME, or the output of `kubectl get -o name`. */
export function requestNameOf(word: string): string {
  return word.replace(kind, '')
}

const podKind = /^podcertificaterequests?(?:\.(?:v1(?:beta1)?\.)?certificates\.k8s\.io)?\//i

/** Returns the name of a PodCertificateRequest with its kind before it, as kubectl prints it; undefined for another object. */
export function podRequestNameOf(word: string): string | undefined {
  return podKind.test(word) ? word.replace(podKind, '') : undefined
}

/** Returns why the API server rejects an object with this name, or undefined (k8s.io/apimachinery pkg/api/validation/path). */
export function objectNameDefect(name: string): string | undefined {
  if (name === '.' || name === '..') return `${quoted(name)} is a path segment, not a name`
  const odd = ['/', '%'].find((character) => name.includes(character))
  return odd === undefined ? undefined : `${quoted(name)} contains "${odd}", which API paths do not allow`
}

/** Returns the name of an object as `kubectl get -o name` prints it. */
export function resourceNameOf(name: string): string {
  return `certificatesigningrequest.certificates.k8s.io/${name}`
}

export function podResourceNameOf(name: string): string {
  return `podcertificaterequest.certificates.k8s.io/${name}`
}

/** Returns the name as a command argument, with its kind before it when the name begins like a flag. */
export function requestWord(name: string): string {
  return name.startsWith('-') ? `csr/${name}` : name
}
