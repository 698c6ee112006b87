import type { RotationRecovery } from '../../rotation/report.ts'
import { counted } from '../sections.ts'
import { printable } from '../terminal.ts'
import type { View } from '../view.ts'

const outcomes = {
  'nothing-expired': 'no CA on these nodes has expired: nothing to recover',
  planned: 'plan only; nothing was written',
  declined: 'declined: nothing was written',
  recovered: 'done: the components of these nodes have valid certificates',
} as const

/** Returns what a recovery did or would do, and the steps that remain for the operator. */
export function renderRecovery(report: RotationRecovery, { paint }: View): string {
  const { outcome, renewed, files, restarts, foreign } = report
  const byNode = Map.groupBy(files, ({ node }) => node)
  const lines = [
    ...renewed.map(
      ({ subject, expiredAt, notAfter }) =>
        `${paint.heading(printable(subject))} expired ${expiredAt.slice(0, 10)}: renewed until ${notAfter.slice(0, 10)} with the same name and key`,
    ),
    ...[...byNode].flatMap(([node, its]) => [
      `${printable(node)}: ${counted(its.length, 'file')}`,
      ...its.map(({ path, what }) => `  ${printable(path)}: ${printable(what.join(', '))}`),
    ]),
    ...(restarts.length === 0
      ? []
      : [`static pods and kubelet restart on ${printable(restarts.join(', '))}`]),
    ...foreign.map(
      ({ node, path, subject }) =>
        `${printable(node)}:${printable(path)}: ${printable(subject)} has expired too; its signer must reissue it`,
    ),
    outcomes[outcome],
    ...(outcome === 'planned' || outcome === 'recovered'
      ? [
          'next, through the API server: restart pods that keep the old ca.crt in memory (kubectl rollout restart). Update caBundles of webhooks and',
          'APIServices, and kube-public/cluster-info, with the renewed CA; export kubeconfigs for users again. To replace the CA key, run kcert rotate-ca.',
        ]
      : []),
  ]
  return `${lines.join('\n')}\n`
}
