import type { Playbook } from '../phase.ts'
import { changeOf } from '../target.ts'
import { targetOf } from '../target-reading.ts'
import { impactOfEtcd } from './impact.ts'
import { etcdLeafFiles, isOfNewCa } from './members.ts'
import { brokenEtcdConnection, etcdModelSections } from './model.ts'
import { etcdRotation } from './phase-table.ts'
import { createCa } from './phases/1-create-ca.ts'
import { presentBridge } from './phases/2-present-bridge.ts'
import { restartEtcd } from './phases/3-restart-etcd.ts'
import { restartApiServers } from './phases/4-restart-api-servers.ts'
import { dropBridge } from './phases/5-drop-bridge.ts'
import { finish } from './phases/6-finish.ts'
import { etcdPreflight, unseenEtcdNodes } from './refusals.ts'

const targetSections = ['nodes', 'components', 'kubelets', 'etcdMembers', 'files', 'intents'] as const

/** The rotation of etcd's CA. phase-table.ts describes each phase. */
export const etcdPlaybook: Playbook = {
  ...etcdRotation,
  phases: [createCa, presentBridge, restartEtcd, restartApiServers, dropBridge, finish],
  sections: [...targetSections, 'copies', 'evidence', 'kubeadm'],
  targetSections,
  modelSections: etcdModelSections,
  targetOf,
  check: brokenEtcdConnection,
  preflight: etcdPreflight,
  unseenNodes: unseenEtcdNodes,
  positionOf(observed, target) {
    const change = changeOf(target, 'etcd')
    if (target.isDropping) return 'removing'
    const isPresented = change && etcdLeafFiles(observed).some((file) => isOfNewCa(observed, file, change))
    return isPresented ? 'reissuing' : 'preparing'
  },
  // `kubeadm certs renew` makes certificates pending again in phase 2.
  revertedPhases: () => new Map(),
  impactOf: impactOfEtcd,
}
