import type { CertificateReport } from '../../inspection/report.ts'
import { altNameList } from '../names.ts'

type Subtrees = NonNullable<CertificateReport['nameConstraints']>['permitted']

/**
 * Returns rare fields of a certificate, each with its label: name constraints, CRLs, AIA, policies, unknown critical extensions.
 */
export function certificateExtras(certificate: CertificateReport): [label: string, text: string][] {
  const { nameConstraints, crlDistributionPoints, authorityInfoAccess } = certificate
  const found: [string, string | undefined][] = [
    ['permits names', nameConstraints && subtreesText(nameConstraints.permitted)],
    ['excludes names', nameConstraints && subtreesText(nameConstraints.excluded)],
    ['CRL', crlDistributionPoints?.join(', ')],
    ['OCSP', authorityInfoAccess?.ocsp.join(', ')],
    ['CA issuers', authorityInfoAccess?.caIssuers.join(', ')],
    ['policies', certificate.certificatePolicies?.join(', ')],
    ['unknown critical', certificate.unknownCriticalExtensions?.join(', ')],
  ]
  return found.filter((one): one is [string, string] => one[1] !== undefined && one[1] !== '')
}

function subtreesText(subtrees: Subtrees): string {
  return altNameList(subtrees)
    .map((name) => (name === '' ? '(all)' : name))
    .join(', ')
}
