import { dnsLabel, longestLabel, longestSubdomain } from '../x509/plain-names.ts'

// spec.signerName, as the API server checks it (k8s.io/kubernetes pkg/apis/core/validation/names.go).

/** A domain, a slash, and a path with room for a namespace, a dot and a name. */
const longestSignerName = longestSubdomain + 1 + longestLabel + 1 + longestSubdomain

/** Returns why the API server rejects the name of a signer; undefined when it accepts it. */
export function signerNameDefect(name: string): string | undefined {
  if (name === '') return 'is empty'
  if (name.length > longestSignerName) return `has ${name.length} characters, more than ${longestSignerName}`
  const [domain = '', path = '', ...more] = name.split('/')
  if (more.length > 0 || !name.includes('/')) return 'is not a domain, one slash and a path'
  return domainDefect(domain) ?? pathDefect(path)
}

function domainDefect(domain: string): string | undefined {
  if (domain.length > longestSubdomain) return `has a domain of more than ${longestSubdomain} characters`
  const labels = domain.split('.')
  const wrong = labels.find((one) => one.length > longestLabel || !dnsLabel.test(one))
  if (wrong !== undefined) return `has a domain with "${wrong}", which is not a DNS label`
  return labels.length < 2 ? `has a domain without a dot: "${domain}"` : undefined
}

// The server splits the path at its dots and requires a subdomain in each part, so a part is a label of up to 253 characters.
function pathDefect(path: string): string | undefined {
  const wrong = path.split('.').find((one) => one.length > longestSubdomain || !dnsLabel.test(one))
  return wrong === undefined ? undefined : `has a path with "${wrong}", which is not a DNS name`
}

/** True for signer names that Kubernetes reserves. */
export function isKubernetesDomain(signerName: string): boolean {
  const [domain = ''] = signerName.split('/')
  return domain === 'kubernetes.io' || domain.endsWith('.kubernetes.io')
}
