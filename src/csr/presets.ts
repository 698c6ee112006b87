import { given } from '../errors/given.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { isSubdomain } from '../x509/plain-names.ts'
import { quoted } from './quoting.ts'
import { defaultKeyType, joinedAltNames, noAltNames, objectNameOf, type RequestSpec } from './request-spec.ts'
import { apiServerClient, kubeletClient, kubeletServing, nodePrefix, nodesGroup } from './signers.ts'

// Requests with a form that Kubernetes defines. They contain exactly what the signer requires.

/** The names from flags, in addition to those of the preset. */
type Names = RequestSpec['altNames']

/** X.520 limits a common name to 64 characters; OpenSSL refuses longer ones, Go does not. */
const longestCommonName = 64

const common = { keyType: defaultKeyType, notices: [] } as const

/** Returns the request of a user for a client certificate: the common name is the user, organizations are groups. */
export function userSpec(user: string, groups: readonly string[], altNames: Names): RequestSpec {
  if (user === '') throw refuse('--user ""', 'a user needs a name')
  return {
    subject: { commonName: user, organization: groups },
    altNames,
    ...common,
    objectName: objectNameOf(user),
    signerName: apiServerClient,
    purpose: 'client auth',
    notices: user.startsWith('system:')
      ? [`names that begin with "system:" are reserved for Kubernetes: ${quoted(user)}`]
      : [],
  }
}

/** Returns the request of a kubelet for its client certificate. */
export function kubeletClientSpec(node: string, altNames: Names): RequestSpec {
  const [name] = Object.values(altNames).flat()
  if (name !== undefined)
    throw refuse(
      `--kubelet-client with the name ${quoted(name)}`,
      `${kubeletClient} does not sign requests with SANs`,
    )
  return {
    subject: nodeSubject('--kubelet-client', node),
    altNames: noAltNames,
    ...common,
    objectName: objectNameOf(`kubelet-client-${node}`),
    signerName: kubeletClient,
    purpose: 'client auth',
  }
}

/** Returns the request of a kubelet for its serving certificate. Without names, it has the Node's name. */
export function kubeletServingSpec(node: string, altNames: Names): RequestSpec {
  const [wrong] = [...altNames.email, ...altNames.uri]
  if (wrong !== undefined)
    throw refuse(
      `--kubelet-serving with the name ${quoted(wrong)}`,
      `${kubeletServing} signs only DNS names and IP addresses`,
    )
  const isNamed = altNames.dns.length + altNames.ip.length > 0
  return {
    subject: nodeSubject('--kubelet-serving', node),
    altNames: isNamed ? altNames : { ...noAltNames, dns: [node] },
    ...common,
    objectName: objectNameOf(`kubelet-serving-${node}`),
    signerName: kubeletServing,
    purpose: 'server auth',
    notices: isNamed
      ? []
      : [
          `the only SAN is ${quoted(node)}, but API servers connect to kubelets by IP address; add --ip ADDRESS`,
        ],
  }
}

function nodeSubject(flag: string, node: string): RequestSpec['subject'] {
  if (node.startsWith(nodePrefix))
    throw refuse(
      `${flag} ${quoted(node)}`,
      'this is the name of the user, not of the Node',
      `${flag} ${node.slice(nodePrefix.length)}`,
    )
  if (!isSubdomain(node))
    throw refuse(
      `${flag} ${quoted(node)}`,
      'not a valid Node name: use lower-case letters, digits, "-" and "."',
    )
  return { commonName: nodePrefix + node, organization: [nodesGroup] }
}

/**
 * Returns the request of a Service: all names under which clients in the cluster reach it. Kubernetes has no signer
 * for these; `signerName` comes from a flag.
 */
export function serviceSpec(service: string, clusterDomain: string, altNames: Names): RequestSpec {
  const [name = '', namespace = '', ...rest] = service.split('.')
  if (!isSubdomain(name) || !isSubdomain(namespace) || rest.length > 0)
    throw refuse(`--service ${quoted(service)}`, 'use NAME.NAMESPACE', serviceAdvice(name, namespace, rest))
  const host = `${name}.${namespace}.svc`
  const own = { ...noAltNames, dns: [`${host}.${clusterDomain}`, host, `${name}.${namespace}`, name] }
  return {
    // Clients no longer read the common name; some tools show nothing else.
    subject: host.length <= longestCommonName ? { commonName: host } : {},
    altNames: joinedAltNames(own, altNames),
    ...common,
    objectName: objectNameOf(`${name}.${namespace}`),
    purpose: 'server auth',
  }
}

function serviceAdvice(name: string, namespace: string, rest: readonly string[]): string | undefined {
  if (rest[0] === 'svc') return `--service ${name}.${namespace}`
  return namespace === '' && isSubdomain(name) ? `--service ${name}.NAMESPACE` : undefined
}

function refuse(what: string, why: string, next?: string): KcertError {
  return new KcertError('KCERT_USAGE', what, given({ why, next }))
}
