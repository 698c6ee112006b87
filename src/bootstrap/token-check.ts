import { rfc3339 } from '../pki/rfc3339.ts'
import { type CheckLine, noLine, okLine, unknownLine } from './check-line.ts'
import type { SignatureFacts } from './cluster-info-report.ts'
import { verdictOf } from './cluster-info-verification.ts'
import type { JoiningRight } from './joining-rights.ts'
import { type TokenCheck, tokenReport } from './token-report.ts'
import type { TokenFacts } from './token-secret.ts'

/** Whether the API server authenticates the token. */
export type Recognition =
  | { readonly as: 'authenticated'; readonly username: string; readonly groups: readonly string[] }
  | { readonly as: 'rejected' }
  | { readonly as: 'unknown'; readonly why: string }

/** What is known about a token, without its secret part. */
export interface TokenFindings {
  readonly facts: TokenFacts
  /** Whether the given token equals the one in the cluster; undefined where only an ID was given. */
  readonly isTheSame: boolean | undefined
  readonly signature: SignatureFacts['state'] | 'no-cluster-info'
  readonly recognition: Recognition
  readonly rights: readonly { readonly right: JoiningRight; readonly allowed: boolean | undefined }[]
}

/** Evaluates whether a node can join with a token. */
export function checkToken(findings: TokenFindings): TokenCheck {
  const { facts, isTheSame, rights } = findings
  const checks = [
    ...faultLines(facts),
    ...(isTheSame === undefined ? [] : [sameLine(isTheSame)]),
    ...usageLines(findings),
    recognitionLine(findings),
    ...rights.map(({ right, allowed }) => rightLine(right, allowed)),
  ]
  return { ...head, token: tokenReport(facts), verdict: verdictOf(checks), checks }
}

/** The check of a token that the cluster does not have. */
export function absentToken(id: string): TokenCheck {
  const detail = `the cluster has no token ${id}: it was never created, was deleted, or expired and was deleted`
  return { ...head, verdict: 'failed', checks: [noLine('exists', detail, newToken)] }
}

const head = { apiVersion: 'kcert/v1', kind: 'TokenCheck' } as const
const newToken = 'kcert token create'

function faultLines({ faults, expiration }: TokenFacts): CheckLine[] {
  if (faults.length > 0) return faults.map(({ id, detail }) => noLine(id, detail, newToken))
  const until = expiration === undefined ? 'and never expires' : `until ${rfc3339(expiration)}`
  return [okLine('valid', `the Secret is valid, ${until}`)]
}

function sameLine(isTheSame: boolean): CheckLine {
  if (isTheSame) return okLine('secret', 'the given token equals the one in the cluster')
  return noLine(
    'secret',
    'the secret part differs from the one in the cluster: mistyped, or a token of another cluster',
    newToken,
  )
}

function usageLines({ facts: { usages }, signature }: TokenFindings): CheckLine[] {
  const missing = (usage: string, id: string, consequence: string): CheckLine =>
    noLine(id, `usage-bootstrap-${usage} is not "true": ${consequence}`, newToken)
  return [
    ...(usages.includes('authentication')
      ? []
      : [missing('authentication', 'authentication', 'the token cannot authenticate')]),
    usages.includes('signing')
      ? signatureLine(signature)
      : missing('signing', 'signature', 'kubeadm join cannot verify cluster-info with it'),
  ]
}

function signatureLine(state: TokenFindings['signature']): CheckLine {
  const id = 'signature'
  const next = 'kcert cluster-info verify'
  if (state === 'valid') return okLine(id, 'its signature of cluster-info is valid')
  if (state === 'no-cluster-info')
    return noLine(
      id,
      'there is no cluster-info to sign; create it on a control-plane node',
      'kubeadm init phase bootstrap-token',
    )
  if (state === 'unknown') return unknownLine(id, 'its signature of cluster-info could not be verified', next)
  const detail =
    state === 'missing'
      ? 'cluster-info is not signed with it; kube-controller-manager signs within seconds'
      : 'its signature is of an older cluster-info'
  return noLine(id, detail, next)
}

function recognitionLine({ facts, recognition }: TokenFindings): CheckLine {
  const id = 'authenticated'
  if (recognition.as === 'authenticated') {
    const { username, groups } = recognition
    return okLine(id, `the API server authenticates it as ${username} (${groups.join(', ')})`)
  }
  if (recognition.as === 'unknown')
    return unknownLine(id, `kcert could not authenticate with it: ${recognition.why}`)
  const rejected = 'the API server rejects it (401)'
  if (facts.faults.length > 0 || !facts.usages.includes('authentication'))
    return noLine(id, rejected, newToken)
  return noLine(
    id,
    `${rejected}: kube-apiserver needs --enable-bootstrap-token-auth=true; run this on a control-plane node`,
    'grep enable-bootstrap-token-auth /etc/kubernetes/manifests/kube-apiserver.yaml',
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
      `unknown whether ${who} may ${purpose}: you may not create subjectaccessreviews`,
      'kubectl auth can-i create subjectaccessreviews',
    )
  return noLine(
    id,
    `${who} may not ${purpose}: ${otherwise}`,
    id === 'kubeadm-configuration'
      ? 'kubeadm init phase upload-config all'
      : 'kcert bootstrap rbac -o yaml | kubectl apply -f -',
  )
}
