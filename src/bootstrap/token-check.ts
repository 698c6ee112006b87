import { type CheckLine, noLine, okLine, unknownLine } from './check-line.ts'
import type { SignatureFacts } from './cluster-info-report.ts'
import { verdictOf } from './cluster-info-verification.ts'
import type { JoiningRight } from './joining-rights.ts'
import { type TokenCheck, tokenReport } from './token-report.ts'
import type { TokenFacts } from './token-secret.ts'

/** What the API server said to the bearer of the token. */
export type Recognition =
  | { readonly as: 'known'; readonly username: string; readonly groups: readonly string[] }
  | { readonly as: 'unknown-to-it' }
  | { readonly as: 'not-asked'; readonly why: string }

/** Everything that was found out about a token; its secret half is in none of it. */
export interface TokenFindings {
  readonly facts: TokenFacts
  /** Whether the token that was handed over is this one; undefined where only its id was. */
  readonly isTheSame: boolean | undefined
  readonly signature: SignatureFacts['state'] | 'no-cluster-info'
  readonly recognition: Recognition
  readonly rights: readonly { readonly right: JoiningRight; readonly allowed: boolean | undefined }[]
}

/** Judges whether a newcomer gets in with a token. */
export function checkToken(findings: TokenFindings): TokenCheck {
  const { facts, isTheSame, rights } = findings
  const checks = [
    ...faultLines(facts),
    ...(isTheSame === undefined ? [] : [sameLine(isTheSame)]),
    ...usageLines(findings),
    recognitionLine(findings),
    ...rights.map(({ right, allowed }) => rightLine(right, allowed)),
  ]
  return {
    apiVersion: 'kcert/v1',
    kind: 'TokenCheck',
    token: tokenReport(facts),
    verdict: verdictOf(checks),
    checks,
  }
}

/** The check of a token that the cluster does not have. */
export function absentToken(id: string): TokenCheck {
  return {
    apiVersion: 'kcert/v1',
    kind: 'TokenCheck',
    verdict: 'no',
    checks: [
      noLine(
        'exists',
        `the cluster has no token ${id}: it was never there, was deleted, or has expired and was cleaned up`,
        'kcert token create',
      ),
    ],
  }
}

const newToken = 'kcert token create'

function faultLines({ faults, expiration }: TokenFacts): CheckLine[] {
  if (faults.length > 0) return faults.map(({ id, detail }) => noLine(id, detail, newToken))
  const until =
    expiration === undefined
      ? 'and never expires'
      : `until ${expiration.toISOString().replace(/\.\d+Z$/, 'Z')}`
  return [okLine('valid', `the Secret is in order, ${until}`)]
}

function sameLine(isTheSame: boolean): CheckLine {
  if (isTheSame) return okLine('secret', "the token is the cluster's")
  return noLine(
    'secret',
    "its second half is not the cluster's: mistyped, or a token of another cluster",
    newToken,
  )
}

function usageLines({ facts: { usages }, signature }: TokenFindings): CheckLine[] {
  const isKnown = usages.includes('authentication')
  const what = 'usage-bootstrap-authentication is not "true": nobody is known by it'
  return [
    ...(isKnown ? [] : [noLine('authentication', what, newToken)]),
    usages.includes('signing')
      ? signatureLine(signature)
      : noLine(
          'signature',
          'usage-bootstrap-signing is not "true", so kubeadm join cannot find the cluster by it',
          newToken,
        ),
  ]
}

function signatureLine(state: TokenFindings['signature']): CheckLine {
  const id = 'signature'
  const next = 'kcert cluster-info verify'
  if (state === 'stands') return okLine(id, 'its signature of cluster-info stands')
  if (state === 'no-cluster-info')
    return noLine(
      id,
      'there is no cluster-info to be signed',
      'on a control-plane node: kubeadm init phase bootstrap-token',
    )
  if (state === 'unknown')
    return unknownLine(id, 'its signature of cluster-info cannot be computed here', next)
  const detail =
    state === 'missing'
      ? 'cluster-info is not signed by it (yet): kube-controller-manager does that within seconds'
      : 'its signature of cluster-info is of another text'
  return noLine(id, detail, next)
}

function recognitionLine({ facts, recognition }: TokenFindings): CheckLine {
  const id = 'known'
  if (recognition.as === 'known')
    return okLine(
      id,
      `the API server knows its bearer as ${recognition.username} (${recognition.groups.join(', ')})`,
    )
  if (recognition.as === 'not-asked')
    return unknownLine(id, `the API server was not asked by it: ${recognition.why}`)
  const isInOrder = facts.faults.length === 0 && facts.usages.includes('authentication')
  return noLine(
    id,
    'the API server does not know its bearer (401)',
    isInOrder ? 'look for --enable-bootstrap-token-auth=true at kube-apiserver' : newToken,
  )
}

function rightLine(
  { id, subject, purpose, otherwise }: JoiningRight,
  allowed: boolean | undefined,
): CheckLine {
  const who = subject.user.startsWith('system:node:') ? 'a node' : subject.user
  if (allowed === true) return okLine(id, `${who} may ${purpose}`)
  if (allowed === undefined)
    return unknownLine(
      id,
      `whether ${who} may ${purpose} is not known: we may not ask`,
      'ask with a kubeconfig that may create subjectaccessreviews',
    )
  return noLine(
    id,
    `${who} may not ${purpose}: ${otherwise}`,
    id === 'kubeadm-configuration'
      ? 'on a control-plane node: kubeadm init phase upload-config all'
      : 'kcert bootstrap rbac -o yaml | kubectl apply -f -',
  )
}
