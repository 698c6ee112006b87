import * as v from 'valibot'
import * as json from '../x509/json-fields.ts'
import { phaseEvents } from './journal.ts'
import { phaseTable } from './phase-table.ts'
import { described, header, objects, optionalField, seconds, text, texts } from './schema-parts.ts'

// The JSON contracts of `kcert rotate-ca`. docs/schemas/ is generated from them; the program only imports their types.

const hex = v.pipe(text, v.regex(/^[0-9a-f]+$/))
const phaseNumber = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(phaseTable.length))
const risk = described(
  v.picklist(['reads', 'writes', 'restarts', 'irreversible']),
  'what running the phase can affect: nothing, files and objects, processes, or the possibility to roll back',
)

/** A certificate, and its generation: old, new, bridge certificate or other. */
const certificateSchema = v.object({
  generation: described(
    v.picklist(['old', 'new', 'bridge', 'other']),
    'old CA, new CA, bridge certificate or other; for a leaf certificate, the CA that signed it',
  ),
  subject: described(text, 'RFC 4514'),
  notAfter: optionalField(json.time, 'absent until the certificate is created'),
  sha256: optionalField(hex, 'of the DER; absent until the certificate is created'),
})

const pendingItemSchema = v.object({
  at: described(text, 'a node, file, object, pod or process'),
  what: described(text, 'what is still missing'),
})

const refusalSchema = v.object({ what: text, why: text, next: text })

const caSchema = v.object({
  ca: v.picklist(['cluster', 'front-proxy', 'etcd']),
  oldCa: certificateSchema,
  newCa: certificateSchema,
  oldPin: described(text, 'kubeadm --discovery-token-ca-cert-hash'),
  newPin: v.optional(text),
  hasBridge: described(
    v.boolean(),
    'whether servers send the bridge certificate (the new CA, cross-signed by the old CA)',
  ),
  newKeyType: optionalField(text, 'only with --algorithm'),
})

const keySchema = described(
  v.object({
    oldKeyId: text,
    newKeyId: optionalField(text, 'absent until the key is created'),
  }),
  'the service account key, by key ID (`kid`); only in `kcert rotate-sa-key`',
)

const nextSchema = v.object({ command: text, why: text })

const evidenceSchema = v.object({
  key: described(text, 'what was checked, and where'),
  ok: v.boolean(),
  at: json.time,
  ageSeconds: seconds,
  detail: text,
})

const runSchema = v.object({
  event: v.picklist(phaseEvents),
  at: json.time,
  detail: v.optional(text),
})

const keyFileSchema = v.object({
  node: text,
  path: text,
  ca: optionalField(text, 'the old CA; absent if its key is already overwritten'),
  keyId: optionalField(text, 'ID of the old service account key; absent if it is already overwritten'),
})

const keptKeysSchema = described(
  v.object({
    files: v.array(keyFileSchema),
    encrypted: optionalField(
      objects({ node: text, path: text }),
      "encrypted keys that may be the old CA's; kcert cannot tell without the password",
    ),
    archive: text,
    destroy: text,
  }),
  'files with an old key after the rotation, on the nodes that answered, and the commands that archive or destroy it',
)

export const rotationStatusSchema = v.object({
  ...header('RotationStatus'),
  state: v.picklist(['not-started', 'in-progress', 'finished']),
  position: described(
    v.picklist(['preparing', 'reissuing', 'removing']),
    'read from the cluster. preparing: certificates of the new CA are not used yet; reissuing: they are in use; removing: the old CA is being removed',
  ),
  cas: v.array(caSchema),
  serviceAccountKey: v.optional(keySchema),
  next: optionalField(nextSchema, 'absent if nothing is left to do'),
  phases: objects({
    number: phaseNumber,
    id: text,
    title: text,
    risk,
    state: described(
      v.picklist(['complete', 'incomplete', 'waiting']),
      'complete; incomplete; waiting: a phase that must be complete first is not',
    ),
    pending: v.array(pendingItemSchema),
    remarks: texts,
    evidence: described(v.array(evidenceSchema), 'the last result of each check'),
    lastRun: optionalField(runSchema, 'from the journal'),
  }),
  nodes: objects({
    name: text,
    isControlPlane: v.boolean(),
    isEtcdMachine: optionalField(
      v.boolean(),
      'true for a machine of external etcd, which has no Node object',
    ),
    isReady: described(
      v.boolean(),
      'condition Ready of the Node object; for a machine of etcd, that it responds',
    ),
    unreachable: optionalField(text, 'why the node is unreachable'),
    clockSkewSeconds: v.optional(v.number()),
    pendingPhases: described(v.array(phaseNumber), 'phases with something pending on this node'),
  }),
  blockers: v.array(refusalSchema),
  oldKeys: v.optional(keptKeysSchema),
})

const stepSchema = v.object({
  kind: v.picklist(['write-file', 'patch-object', 'restart', 'rollout', 'wait', 'probe', 'confirm']),
  what: text,
  at: described(text, 'node or object'),
  lane: optionalField(text, 'lanes of one group run in parallel'),
  group: v.optional(v.number()),
  changes: optionalField(texts, 'removed ("- ") and added ("+ ") lines; private keys are never shown'),
})

const phasePlanSchema = v.object({
  number: phaseNumber,
  title: text,
  risk,
  pending: v.array(pendingItemSchema),
  steps: v.array(stepSchema),
  remarks: texts,
  estimatedSeconds: seconds,
})

const partySchema = v.object({
  name: described(text, 'a process, kubeconfig or object'),
  location: described(text, 'file or field, and the flag that names it'),
  certificates: described(v.array(certificateSchema), 'certificates on disk or in the object'),
  loaded: optionalField(
    v.array(certificateSchema),
    'certificates served in a TLS handshake; absent if kcert cannot connect',
  ),
})

const sourcesSchema = v.object({
  folder: text,
  step: described(
    v.picklist(['find', 'overlap', 'final']),
    'find: phase 1 has not created the new CA, so there is no diff yet; overlap: the files need both CAs before phase 9 (etcd: 5); final: phase 12 (etcd: 6) has started, and the files need only the new CA',
  ),
  files: described(v.number(), 'number of files that kcert read'),
  places: described(
    objects({
      file: described(text, 'path below the folder'),
      line: v.number(),
      object: optionalField(text, 'kind, namespace and name; absent in templates and other files'),
      ca: v.picklist(['cluster', 'front-proxy', 'etcd']),
      form: v.picklist(['PEM', 'base64', 'CA cert hash', 'other']),
      contains: v.picklist(['old', 'both']),
      needsChange: described(
        v.boolean(),
        'whether the file must change now; with step find, during the rotation',
      ),
      byHand: optionalField(text, 'why the diff does not contain the change, so that you must make it'),
    }),
    'what would restore an old CA',
  ),
  unchecked: described(
    objects({ file: text, why: text }),
    'files and folders of which it is not known whether they contain an old CA',
  ),
  diff: described(
    text,
    'unified diff of the files, for git apply and patch -p1 in the folder; empty if nothing can change. It contains no lines that may be secret',
  ),
})

export const rotationPlanSchema = v.object({
  ...header('RotationPlan'),
  scope: described(
    v.picklist(['all', 'phase']),
    'all: every phase, each planned on the expected result of the previous one; phase: exactly what the next run would do',
  ),
  cas: v.array(caSchema),
  serviceAccountKey: v.optional(keySchema),
  trustHolders: objects({
    ...partySchema.entries,
    reloads: described(v.boolean(), 'false: the process reads it only at startup'),
  }),
  credentialHolders: v.array(partySchema),
  phases: v.array(phasePlanSchema),
  restarts: objects({ process: text, phases: v.array(phaseNumber) }),
  rollouts: objects({ workload: text, phases: v.array(phaseNumber), pods: v.number() }),
  assumptions: described(
    texts,
    'behavior of processes that kcert cannot detect: it assumes the behavior of earlier versions',
  ),
  keyType: optionalField(
    v.object({
      wanted: text,
      changes: described(texts, 'what gets keys of this type'),
      unchanged: described(texts, 'what keeps its key, or always has keys of another type'),
      unchecked: described(texts, 'clients and servers that kcert cannot see, and what they must support'),
    }),
    'only with --algorithm',
  ),
  blastRadius: v.object({
    caBundles: described(
      objects({ id: text, server: text }),
      'webhooks, APIServices and CRD conversions verified with the old CA',
    ),
    appliedBundles: described(
      texts,
      'objects whose kubectl apply annotation contains the old CA: applying the same manifest restores it',
    ),
    kubeconfigs: objects({ id: text, onNode: v.boolean(), client: v.optional(certificateSchema) }),
    joinTokens: described(texts, 'ids of tokens that sign cluster-info'),
    foreign: described(
      objects({ server: text, leaf: certificateSchema }),
      'certificates of other applications that the old CA signed; their owners must reissue them',
    ),
    stored: described(
      objects({ object: text, what: text, owner: v.optional(text) }),
      'ConfigMaps and Secrets of other applications that contain the old CA or a certificate that it signed',
    ),
    storedUnchecked: described(texts, 'kinds that kcert may not list and did not check'),
    barePods: described(texts, 'pods without a controller'),
    pods: described(v.number(), 'all pods with a service account'),
  }),
  blockers: v.array(refusalSchema),
  estimatedSeconds: seconds,
  sources: optionalField(sourcesSchema, 'only with --sources'),
})

export const rotationRunSchema = v.object({
  ...header('RotationRun'),
  direction: v.picklist(['forward', 'rollback']),
  outcome: v.picklist(['done', 'declined']),
  phases: objects({
    number: phaseNumber,
    title: text,
    outcome: v.picklist(['completed', 'declined']),
    startedAt: json.time,
    finishedAt: json.time,
    actions: described(v.number(), 'number of changes, waits and checks; 0: the phase was already complete'),
    remarks: texts,
  }),
  next: v.optional(nextSchema),
  oldKeys: v.optional(keptKeysSchema),
})

export const rotationOldKeysSchema = v.object({
  ...header('RotationOldKeys'),
  action: v.picklist(['archive', 'destroy']),
  outcome: described(
    v.picklist(['nothing-left', 'planned', 'declined', 'done', 'incomplete']),
    'incomplete: a node did not answer and may have more keys, a key is encrypted, or a key was found after the removal',
  ),
  oldCas: objects({
    ca: text,
    subject: text,
    keySha256: described(hex, 'SHA-256 of the SubjectPublicKeyInfo'),
  }),
  serviceAccountKey: v.optional(keySchema),
  files: described(
    objects({
      ...keyFileSchema.entries,
      sha256: described(hex, 'SHA-256 of the file'),
      state: described(v.picklist(['present', 'removed']), 'state at the end of the command'),
    }),
    "files in kcert's own folders",
  ),
  archived: described(texts, 'files on this machine; kcert read each one back'),
  encrypted: described(
    objects({ node: text, path: text, why: text, next: text }),
    "encrypted keys in kcert's own folders and beside CAs; skipped",
  ),
  unreachable: objects({ node: text, why: text }),
})

export const rotationRunbookSchema = v.object({
  ...header('RotationRunbook'),
  phase: phaseNumber,
  title: text,
  folder: text,
  scripts: described(
    objects({
      order: described(v.number(), 'scripts with the same number may run in parallel'),
      maxUnavailable: v.number(),
      node: text,
      path: described(text, 'path below the folder; copy the whole folder to the node'),
      actions: described(texts, 'actions, as in the plan'),
    }),
    'empty if no script must run before the next command',
  ),
  next: described(nextSchema, 'command to run after the scripts'),
  rollback: optionalField(text, 'command that writes scripts to roll back these changes'),
})

export const rotationRecoverySchema = v.object({
  ...header('RotationRecovery'),
  outcome: v.picklist(['nothing-expired', 'planned', 'declined', 'recovered']),
  renewed: described(
    objects({ subject: text, expiredAt: json.time, notAfter: json.time }),
    'expired CAs that were renewed with the same name and key',
  ),
  files: objects({ node: text, path: text, what: texts }),
  restarts: described(texts, 'nodes whose static pods and kubelet restart'),
  foreign: described(
    objects({ node: text, path: text, subject: text }),
    'expired certificates that no CA on these nodes signed',
  ),
})

export const rotationVerificationSchema = v.object({
  ...header('RotationVerification'),
  ok: v.boolean(),
  cas: v.array(caSchema),
  serviceAccountKey: v.optional(keySchema),
  checks: objects({
    id: text,
    what: text,
    ok: v.boolean(),
    checked: described(v.number(), 'number of checked items'),
    findings: objects({ ...pendingItemSchema.entries, next: v.optional(text) }),
    accepted: optionalField(v.array(pendingItemSchema), 'findings accepted with --waive'),
  }),
  handshakes: objects({ server: text, chain: v.array(certificateSchema), at: json.time }),
  evidence: v.array(evidenceSchema),
})

export type RotationStatus = v.InferOutput<typeof rotationStatusSchema>
export type RotationPlan = v.InferOutput<typeof rotationPlanSchema>
export type RotationSources = v.InferOutput<typeof sourcesSchema>
export type RotationRun = v.InferOutput<typeof rotationRunSchema>
export type RotationOldKeys = v.InferOutput<typeof rotationOldKeysSchema>
export type KeyFileView = v.InferOutput<typeof keyFileSchema>
export type KeptKeys = v.InferOutput<typeof keptKeysSchema>
export type RotationRunbook = v.InferOutput<typeof rotationRunbookSchema>
export type RotationRecovery = v.InferOutput<typeof rotationRecoverySchema>
export type RotationVerification = v.InferOutput<typeof rotationVerificationSchema>
export type KeyView = v.InferOutput<typeof keySchema>
export type CaView = v.InferOutput<typeof caSchema>
export type CertificateView = v.InferOutput<typeof certificateSchema>
export type EvidenceView = v.InferOutput<typeof evidenceSchema>
export type PhasePlanView = v.InferOutput<typeof phasePlanSchema>
export type StepView = v.InferOutput<typeof stepSchema>
export type NextView = v.InferOutput<typeof nextSchema>
