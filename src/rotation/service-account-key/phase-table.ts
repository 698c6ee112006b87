import { type PhaseTable, phaseRows } from '../phase-table.ts'

// The rotation of the service account key. kubernetes.io has no page for it. API servers and controller managers read the key only at
// startup, so there are three passes over the API servers: phases 2, 4 and 7. docs/decisions/0016-service-account-key-phases.md has the
// reasons, and the state that an unplanned restart finds at each moment.

const { rows, rowOf } = phaseRows({
  'create-key': {
    title: 'copy the new key to every control-plane node and back up every file that will change',
    after: [],
    risk: 'writes',
    begins: true,
  },
  'verify-both': {
    title: 'make API servers verify tokens of both keys',
    after: [1],
    risk: 'restarts',
  },
  'await-verifiers': {
    title: 'wait until other programs that verify tokens have the new public key',
    after: [2],
    risk: 'writes',
  },
  'sign-new': {
    title: 'make API servers and controller managers sign with the new key',
    after: [2, 3],
    risk: 'restarts',
    changesSigner: true,
  },
  'renew-tokens': {
    title: 'renew every mounted token and hand over new tokens for the others',
    after: [4],
    risk: 'restarts',
  },
  'prove-unused': {
    title: 'prove that no client uses the old key',
    after: [5],
    risk: 'writes',
  },
  'drop-old': {
    title: 'make API servers verify only tokens of the new key',
    after: [5, 6],
    risk: 'restarts',
  },
  finish: {
    title: "delete kcert's files; the rotation cannot be rolled back after that",
    after: [7],
    risk: 'irreversible',
    dropsOld: true,
  },
})

/** Returns the row with this ID. */
export const keyRow = rowOf

/** The phases of the rotation of the service account key, and the names of its files. */
export const keyRotation: PhaseTable = {
  command: 'kcert rotate-sa-key',
  replaces: 'key',
  rows,
  journal: 'kcert-sa-key-rotation',
  copiesIndex: '/var/lib/kcert/copies/sa-key-index.jsonl',
  reads: 'service-account-keys',
}
