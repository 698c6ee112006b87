import { argumentVector, commandLine } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { isSubdomain } from '../x509/plain-names.ts'

// The objects that give a certificate to Pods, as `kubectl create secret tls` and `kubectl create configmap --from-file` create
// them.

/** A name, and the namespace if one was given. */
export interface Place {
  readonly name: string
  readonly namespace?: string
}

/** Returns the name and namespace in NAME or NAME.NAMESPACE. Throws KCERT_USAGE. */
export function parseObjectName(text: string, flag: string): Place {
  // Names of Secrets may contain dots, and namespaces may not: the last part is the namespace.
  const at = text.lastIndexOf('.')
  const name = at === -1 ? text : text.slice(0, at)
  const namespace = at === -1 ? undefined : text.slice(at + 1)
  if (isSubdomain(name) && (namespace === undefined || isSubdomain(namespace)))
    return given({ name, namespace })
  throw new KcertError('KCERT_USAGE', `${flag} ${JSON.stringify(text)} is not NAME or NAME.NAMESPACE`, {
    next: commandLine`${argumentVector([flag])} server.my-namespace`,
  })
}

/** Returns a Secret of type kubernetes.io/tls. It contains the private key. */
export function tlsSecret(place: Place, certificatePem: string, keyPem: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...place },
    type: 'kubernetes.io/tls',
    data: { 'tls.crt': base64(certificatePem), 'tls.key': base64(keyPem) },
  }
}

/** Returns a ConfigMap that publishes a CA under the key ca.crt. */
export function caConfigMap(place: Place, caPem: string): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...place }, data: { 'ca.crt': caPem } }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
