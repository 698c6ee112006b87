import * as Flags from '@oclif/core/flags'
import { booleanFlag, clusterFlags, numberFlag, repeatedFlag, valueFlag, wordFlag } from '../../cli/flags.ts'
import { pauses } from './pauses.ts'

/** Where a rotation's cluster, its nodes and its journal are. */
export const rotationPlaceFlags = {
  inventory: valueFlag(
    'FILE',
    'how nodes are reached: what `kcert rotate-ca discover` wrote and you completed',
    { char: 'i', default: 'kcert.yaml' },
  ),
  journal: valueFlag(
    'FILE',
    'what was intended, done and proven; if not said: kcert-rotation.jsonl beside the inventory. After a rotation that is finished, a new one begins the next',
  ),
  ...clusterFlags,
}

/** What is chosen for a rotation. What stands in the journal holds for later commands that do not say it. */
export const rotationSettingsFlags = {
  ca: valueFlag(
    'CAS',
    'which CAs: cluster, front-proxy, or both with a comma; if not said: as in the inventory, or both',
    { helpGroup: 'ROTATION' },
  ),
  'no-bridge': booleanFlag(
    'no certificate of the new CA signed by the old one: clients that trust the old CA alone fail from phase 9 on',
    { helpGroup: 'ROTATION' },
  ),
  reason: Flags.option({
    description:
      'compromise: the key of the old CA has leaked: no bridge, new leaf keys, and pods are restarted at once in phase 12',
    options: ['routine', 'compromise'] as const,
    helpGroup: 'ROTATION',
  })(),
  'new-keys': booleanFlag(
    'leaf certificates get new keys; else the keys stay and one file of each pair changes',
    { helpGroup: 'ROTATION' },
  ),
  'ca-cert': valueFlag('FILE', 'a new cluster CA of your own, instead of one that phase 1 makes', {
    dependsOn: ['ca-key'],
    helpGroup: 'ROTATION',
  }),
  'ca-key': valueFlag('FILE', 'its private key; it goes to control-plane nodes alone', {
    dependsOn: ['ca-cert'],
    helpGroup: 'ROTATION',
  }),
  'front-proxy-ca-cert': valueFlag('FILE', 'a new front-proxy CA of your own', {
    dependsOn: ['front-proxy-ca-key'],
    helpGroup: 'ROTATION',
  }),
  'front-proxy-ca-key': valueFlag('FILE', 'its private key', {
    dependsOn: ['front-proxy-ca-cert'],
    helpGroup: 'ROTATION',
  }),
  'max-unavailable': numberFlag(
    'N',
    'how many nodes, and how many workloads, change at the same time; the first node is always alone. If not said: as in the inventory, or 4',
    { min: 1, max: 100, helpGroup: 'ROTATION' },
  ),
  pace: valueFlag('DURATION', 'begin no workload before this long after the one before, such as 30s', {
    helpGroup: 'ROTATION',
  }),
  'trust-reloading-clients': booleanFlag(
    'pods need no restart whose programs have client-go 0.36 or later, or that the inventory lists in rereadingCa; --no-trust-reloading-clients restarts them too',
    { allowNo: true, default: true, helpGroup: 'ROTATION' },
  ),
  'accept-outage': booleanFlag('the only API server may be restarted, where one of its flags needs that', {
    helpGroup: 'ROTATION',
  }),
  'accept-untested-version': repeatedFlag(
    '1.38',
    'write to a cluster with components of this minor version, which no rotation was tested on, or of an "unknown" one; may be repeated',
    { helpGroup: 'ROTATION' },
  ),
  waive: repeatedFlag(
    'ID',
    'accept the risk for this pod, workload, kubeconfig, server, file, client address or mix of versions, by the name that kcert shows; may be repeated',
    { helpGroup: 'ROTATION' },
  ),
  soak: valueFlag(
    'DURATION',
    'watch the TLS handshake errors of each API server for this long, in phases 1, 11 and 12',
    { default: '20s', helpGroup: 'ROTATION' },
  ),
}

/** How a command that changes the cluster asks. */
export const rotationConsentFlags = {
  yes: booleanFlag('do not ask; without a terminal it is refused otherwise', { char: 'y' }),
  'dry-run': booleanFlag('show what would be done, and write nothing'),
  'pause-between': wordFlag(pauses, 'ask before each further node, or phase, also with --yes'),
}
