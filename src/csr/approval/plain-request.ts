import { certificateUsages } from '../../pki/usages.ts'
import { readPem } from '../../x509/pem.ts'
import { listed } from '../quoting.ts'
import type { Candidate } from './candidate.ts'

// Kubernetes signs the names, the key and spec.usages, from the first PEM block that Go reads. A signer built on another library
// may read another block and copy other extensions: `openssl x509 -req -copy_extensions copyall` does.

/** SANs, basic constraints and usages, which have rules, and the key identifier. */
const coveredExtensions: ReadonlySet<string> = new Set([
  '2.5.29.17',
  '2.5.29.19',
  '2.5.29.15',
  '2.5.29.37',
  '2.5.29.14',
])

/** Returns the content of a request that Kubernetes ignores and another signer may use; undefined when there is none. */
export function hiddenRequest(candidate: Candidate): string | undefined {
  return textFault(candidate) ?? contentFault(candidate)
}

// OpenSSL ends the base64 of a block at a "-" and reads a block that Go skips, so the two programs read two requests.
function textFault({ object }: Candidate): string | undefined {
  const { blocks, defects } = readPem(object.request ?? new Uint8Array())
  const [defect] = defects
  if (defect !== undefined) return `the PEM text is damaged at line ${defect.line}: ${defect.reason}`
  const [block, ...more] = blocks
  if (block === undefined || more.length > 0)
    return `the PEM text has ${blocks.length} blocks, and Kubernetes reads the first one`
  return block.headers.size === 0 ? undefined : 'the PEM block has headers, which Kubernetes ignores'
}

function contentFault({ object, request }: Candidate): string | undefined {
  const { unreadAttributes, extensions, extendedKeyUsage } = request
  if (unreadAttributes.length > 0)
    return `Kubernetes ignores ${listed(unreadAttributes)}, which another signer may read`
  const more = extensions.filter(({ oid }) => !coveredExtensions.has(oid)).map(({ name }) => name)
  if (more.length > 0)
    return `Kubernetes ignores the requested extensions ${listed(more)}, which another signer may copy`
  const asked = certificateUsages(object.usages)?.extendedKeyUsage
  const beyond = extendedKeyUsage.filter((usage) => !asked?.includes(usage))
  return beyond.length === 0
    ? undefined
    : `the extended key usages ${listed(beyond)} are not in spec.usages, and another signer may copy them`
}
