import * as Flags from '@oclif/core/flags'
import * as Flag from '../../cli/flags.ts'
import { tokenProofs } from '../../rotation/target.ts'
import { rotationPlaceFlags, rotationSettingsFlags } from '../rotate-ca/flags.ts'

/** Select the cluster, nodes and journal of a rotation of the service account key. */
export const keyPlaceFlags = {
  ...rotationPlaceFlags,
  journal: Flag.value(
    'FILE',
    'journal of this rotation (default kcert-sa-key-rotation.jsonl beside the inventory); use a new file for the next rotation',
  ),
}

const { 'accept-untested-version': acceptVersion } = rotationSettingsFlags

/** Choices of a rotation of the service account key. The journal keeps --reason and --proof for later commands. */
export const keySettingsFlags = Flag.inGroup('ROTATION', {
  reason: Flags.option({
    description:
      'why you rotate (default routine); compromise (the key leaked): drop the old key at once, and every token that it signed',
    options: ['routine', 'compromise'] as const,
  })(),
  proof: Flags.option({
    description:
      'what proves that no client uses the old key (phase 6), or the new one (rollback of phase 2): counters of API servers after an hour (default), your confirmation of kcert audit, or the start time of each pod',
    options: tokenProofs,
  })(),
  'max-unavailable': Flag.number(
    'N',
    'how many kubelets restart at the same time; the first one always restarts alone (default as in the inventory, or 4)',
    { min: 1, max: 100 },
  ),
  'accept-outage': Flag.boolean('allow a restart of the only API server'),
  'accept-untested-version': acceptVersion,
  waive: Flag.repeated(
    'ID',
    'accept the risk for this token, kubeconfig, pod, workload of pods, CSI driver or mix of versions, or confirm jwks-upload, jwks-max-age, jwks-last-upload or audit-log; use the ID that kcert prints',
  ),
  soak: Flag.value(
    'DURATION',
    'watch the counters of stale and legacy tokens for this long, after the hour; a client that connects less often is not seen',
    // client-go starts each watch again after 5 to 10 minutes (tools/cache/reflector.go), and the API server verifies the token then.
    { default: '15m' },
  ),
})
