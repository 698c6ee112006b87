import { type PhaseTable, phaseRows } from '../phase-table.ts'

// The rotation of etcd's CA. kubernetes.io has no page for it. etcd and API servers read etcd's CA only at startup, but certificates at
// each handshake. So every certificate is presented with the bridge certificate (the new CA, signed by the old CA) from phase 2 on:
// members with the old CA and members with the new CA accept each other, in any order, wherever kcert stops. With unknown clients,
// phase 2 first makes members trust both CAs. They then also accept certificates of the new CA without the bridge certificate.

const { rows, rowOf } = phaseRows({
  'create-ca': {
    title: 'copy the new etcd CA to every control-plane node and back up every file that will change',
    after: [],
    risk: 'writes',
    begins: true,
  },
  'present-bridge': {
    title: 'reissue the certificates of etcd and its clients, with the bridge certificate',
    after: [1],
    risk: 'writes',
  },
  'restart-etcd': {
    title: 'make each etcd member trust only the new CA: followers first, the leader last',
    after: [2],
    risk: 'restarts',
  },
  // Any restart since phase 3 counts, for example of an upgrade.
  'restart-api-servers': {
    title: 'make each API server trust only the new etcd CA',
    after: [3],
    risk: 'restarts',
  },
  'drop-bridge': {
    title: 'remove the bridge certificate',
    after: [3, 4],
    risk: 'writes',
    endsBridge: true,
  },
  finish: {
    title: "delete kcert's files; the rotation cannot be rolled back after that",
    after: [5],
    risk: 'irreversible',
    dropsOld: true,
  },
})

/** Returns the row with this ID. */
export const etcdRow = rowOf

/** The phases of the rotation of etcd's CA, and the names of its files. */
export const etcdRotation: PhaseTable = {
  command: 'kcert rotate-ca',
  replaces: 'CA',
  rows,
  journal: 'kcert-etcd-rotation',
  copiesIndex: '/var/lib/kcert/copies/etcd-index.jsonl',
  reads: 'etcd',
}
