import * as v from 'valibot'
import { timeSchema as time } from '../x509/json-fields.ts'
import { phaseTable } from './phase-table.ts'

// The JSON contracts of `kcert rotate-ca`. docs/schemas/ is generated from these; the program itself only imports their types.

const hex = v.pipe(v.string(), v.regex(/^[0-9a-f]+$/))
const texts = v.array(v.string())
const header = <Kind extends string>(kind: Kind) => ({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal(kind),
  generatedAt: time,
})
const phaseNumber = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(phaseTable.length))
const seconds = v.pipe(v.number(), v.minValue(0))
const risk = v.pipe(
  v.picklist(['reads', 'writes', 'restarts', 'no-return']),
  v.description('what running it can cost: nothing, files and objects, processes, or the way back'),
)

/** A certificate, and which side of the rotation it stands on. */
const certificateSchema = v.object({
  generation: v.pipe(
    v.picklist(['old', 'new', 'bridge', 'other']),
    v.description(
      'the old CA, the new one, the bridge or none of them; of a leaf: by which of them it is signed',
    ),
  ),
  subject: v.pipe(v.string(), v.description('RFC 4514')),
  notAfter: v.optional(v.pipe(time, v.description('absent while the certificate is not made'))),
  sha256: v.optional(v.pipe(hex, v.description('of the DER; absent while the certificate is not made'))),
})

const gapSchema = v.object({
  at: v.pipe(v.string(), v.description('a node, file, object, pod or process')),
  what: v.pipe(v.string(), v.description('what is not so yet')),
})

const refusalSchema = v.object({ what: v.string(), why: v.string(), next: v.string() })

const authoritySchema = v.object({
  ca: v.picklist(['cluster', 'front-proxy']),
  oldCa: certificateSchema,
  newCa: certificateSchema,
  oldPin: v.pipe(v.string(), v.description('kubeadm --discovery-token-ca-cert-hash')),
  newPin: v.optional(v.string()),
  hasBridge: v.pipe(v.boolean(), v.description('the new CA certified by the old one, beside new leaves')),
})

const nextSchema = v.object({ command: v.string(), why: v.string() })

const evidenceSchema = v.object({
  key: v.pipe(v.string(), v.description('what was proven, and where')),
  ok: v.boolean(),
  at: time,
  ageSeconds: seconds,
  detail: v.string(),
})

const runSchema = v.object({
  event: v.picklist(['begun', 'held', 'stopped', 'undone']),
  at: time,
  detail: v.optional(v.string()),
})

const keyFileSchema = v.object({
  node: v.string(),
  path: v.string(),
  ca: v.optional(v.pipe(v.string(), v.description('absent where the key is overwritten already'))),
})

const keptKeysSchema = v.pipe(
  v.object({
    files: v.array(keyFileSchema),
    encrypted: v.optional(
      v.pipe(
        v.array(v.object({ node: v.string(), path: v.string() })),
        v.description('keys that may be it: only their password tells'),
      ),
    ),
    archive: v.string(),
    destroy: v.string(),
  }),
  v.description(
    "where the old CA's key still lies after the end, as far as nodes answer, and the commands that end that",
  ),
)

export const rotationStatusSchema = v.object({
  ...header('RotationStatus'),
  state: v.picklist(['not-begun', 'under-way', 'finished']),
  position: v.pipe(
    v.picklist(['introducing', 'presenting', 'dropping']),
    v.description(
      'read from the cluster: nobody presents the new CA yet; somebody does; the old CA is being dropped',
    ),
  ),
  authorities: v.array(authoritySchema),
  next: v.optional(v.pipe(nextSchema, v.description('absent when nothing is left to do'))),
  phases: v.array(
    v.object({
      number: phaseNumber,
      id: v.string(),
      title: v.string(),
      risk,
      state: v.pipe(
        v.picklist(['holds', 'open', 'later']),
        v.description('later: one that must hold before it does not'),
      ),
      gaps: v.array(gapSchema),
      remarks: texts,
      evidence: v.pipe(v.array(evidenceSchema), v.description('the last answer of each probe')),
      lastRun: v.optional(v.pipe(runSchema, v.description('by the journal'))),
    }),
  ),
  nodes: v.array(
    v.object({
      name: v.string(),
      isControlPlane: v.boolean(),
      isReady: v.boolean(),
      unreachable: v.optional(v.pipe(v.string(), v.description('why it does not answer'))),
      clockSkewSeconds: v.optional(v.number()),
      openPhases: v.pipe(v.array(phaseNumber), v.description('phases with something open on this node')),
    }),
  ),
  blockers: v.array(refusalSchema),
  oldKeys: v.optional(keptKeysSchema),
})

const stepSchema = v.object({
  kind: v.picklist(['write-file', 'patch-object', 'restart', 'roll', 'wait', 'probe', 'ask']),
  what: v.string(),
  at: v.pipe(v.string(), v.description('node or object')),
  lane: v.optional(v.pipe(v.string(), v.description('lanes of one group run side by side'))),
  group: v.optional(v.number()),
  changes: v.optional(
    v.pipe(texts, v.description('lines taken out ("- ") and put in ("+ "); of keys nothing')),
  ),
})

const phasePlanSchema = v.object({
  number: phaseNumber,
  title: v.string(),
  risk,
  gaps: v.array(gapSchema),
  steps: v.array(stepSchema),
  remarks: texts,
  estimatedSeconds: seconds,
})

const partySchema = v.object({
  who: v.pipe(v.string(), v.description('a process, kubeconfig or object')),
  where: v.pipe(v.string(), v.description('file or field, and the flag that leads there')),
  certificates: v.pipe(v.array(certificateSchema), v.description('on disk, or in the object')),
  loaded: v.optional(
    v.pipe(
      v.array(certificateSchema),
      v.description('as seen in a live handshake; absent where nobody can ask'),
    ),
  ),
})

export const rotationPlanSchema = v.object({
  ...header('RotationPlan'),
  scope: v.pipe(
    v.picklist(['whole', 'phase']),
    v.description(
      'whole: every phase, on what the ones before it leave; phase: exactly what would be done next',
    ),
  ),
  authorities: v.array(authoritySchema),
  verifiers: v.array(
    v.object({
      ...partySchema.entries,
      rereads: v.pipe(v.boolean(), v.description('false: read at the start of the process alone')),
    }),
  ),
  presenters: v.array(partySchema),
  phases: v.array(phasePlanSchema),
  restarts: v.array(v.object({ process: v.string(), phases: v.array(phaseNumber) })),
  rolls: v.array(v.object({ workload: v.string(), phases: v.array(phaseNumber), pods: v.number() })),
  blastRadius: v.object({
    caBundles: v.pipe(
      v.array(v.object({ id: v.string(), server: v.string() })),
      v.description('webhooks, APIServices and CRD conversions verified by the old CA'),
    ),
    appliedBundles: v.pipe(
      texts,
      v.description(
        'objects whose annotation of kubectl apply holds the old CA: the same manifest brings it back',
      ),
    ),
    kubeconfigs: v.array(
      v.object({ id: v.string(), onNode: v.boolean(), client: v.optional(certificateSchema) }),
    ),
    joinTokens: v.pipe(texts, v.description('ids of tokens that sign cluster-info')),
    foreign: v.pipe(
      v.array(v.object({ presenter: v.string(), leaf: certificateSchema })),
      v.description('certificates of others that the old CA signed: their owners re-issue them'),
    ),
    stored: v.pipe(
      v.array(v.object({ object: v.string(), what: v.string(), owner: v.optional(v.string()) })),
      v.description('ConfigMaps and Secrets of others that hold the old CA, or a certificate that it signed'),
    ),
    storedUnread: v.pipe(texts, v.description('kinds that may not be listed: of these nothing is known')),
    barePods: v.pipe(texts, v.description('pods that nobody would make again')),
    pods: v.pipe(v.number(), v.description('all pods with a service account')),
  }),
  blockers: v.array(refusalSchema),
  estimatedSeconds: seconds,
})

export const rotationRunSchema = v.object({
  ...header('RotationRun'),
  direction: v.picklist(['forward', 'back']),
  outcome: v.picklist(['done', 'declined']),
  phases: v.array(
    v.object({
      number: phaseNumber,
      title: v.string(),
      outcome: v.picklist(['held', 'declined']),
      beganAt: time,
      endedAt: time,
      actions: v.pipe(v.number(), v.description('acts, waits and proofs; 0: it held already')),
      remarks: texts,
    }),
  ),
  next: v.optional(nextSchema),
  oldKeys: v.optional(keptKeysSchema),
})

export const rotationOldKeysSchema = v.object({
  ...header('RotationOldKeys'),
  way: v.picklist(['archive', 'destroy']),
  outcome: v.pipe(
    v.picklist(['nothing-left', 'planned', 'declined', 'done', 'incomplete']),
    v.description('incomplete: a node did not answer, and may have more, or a key is encrypted'),
  ),
  oldCas: v.array(
    v.object({
      ca: v.string(),
      subject: v.string(),
      keySha256: v.pipe(hex, v.description('of the SubjectPublicKeyInfo')),
    }),
  ),
  files: v.pipe(
    v.array(
      v.object({
        ...keyFileSchema.entries,
        sha256: v.pipe(hex, v.description('of the file')),
        state: v.pipe(v.picklist(['there', 'removed']), v.description('when the command ended')),
      }),
    ),
    v.description("in kcert's own folders"),
  ),
  archived: v.pipe(texts, v.description('files of this machine, each read back')),
  encrypted: v.pipe(
    v.array(v.object({ node: v.string(), path: v.string(), why: v.string(), next: v.string() })),
    v.description("in kcert's own folders and beside CAs: left as they are"),
  ),
  unreachable: v.array(v.object({ node: v.string(), why: v.string() })),
})

export const rotationRunbookSchema = v.object({
  ...header('RotationRunbook'),
  phase: phaseNumber,
  title: v.string(),
  folder: v.string(),
  scripts: v.pipe(
    v.array(
      v.object({
        order: v.pipe(v.number(), v.description('scripts of one number may run side by side')),
        atOnce: v.number(),
        node: v.string(),
        path: v.pipe(v.string(), v.description('below the folder; its whole folder is carried to the node')),
        acts: v.pipe(texts, v.description('as a plan names them')),
      }),
    ),
    v.description('empty where nothing is to be done on a node before the next command'),
  ),
  next: v.pipe(nextSchema, v.description('once the scripts have been run')),
  back: v.optional(
    v.pipe(v.string(), v.description('the command that writes scripts which take these back')),
  ),
})

export const rotationRecoverySchema = v.object({
  ...header('RotationRecovery'),
  outcome: v.picklist(['nothing-expired', 'planned', 'declined', 'recovered']),
  renewed: v.pipe(
    v.array(v.object({ subject: v.string(), expired: time, until: time })),
    v.description('CAs that had expired; name and key stay'),
  ),
  files: v.array(v.object({ node: v.string(), path: v.string(), what: texts })),
  restarts: v.pipe(texts, v.description('nodes whose static pods and kubelet start anew')),
  foreign: v.pipe(
    v.array(v.object({ node: v.string(), path: v.string(), subject: v.string() })),
    v.description('certificates that have ended and that no CA on these nodes signed'),
  ),
})

export const rotationVerificationSchema = v.object({
  ...header('RotationVerification'),
  holds: v.boolean(),
  authorities: v.array(authoritySchema),
  checks: v.array(
    v.object({
      id: v.string(),
      what: v.string(),
      ok: v.boolean(),
      checked: v.pipe(v.number(), v.description('how many things were looked at')),
      findings: v.array(v.object({ ...gapSchema.entries, next: v.optional(v.string()) })),
      accepted: v.optional(
        v.pipe(v.array(gapSchema), v.description('what would be a finding, and was accepted by --waive')),
      ),
    }),
  ),
  handshakes: v.array(v.object({ presenter: v.string(), chain: v.array(certificateSchema), at: time })),
  evidence: v.array(evidenceSchema),
})

export type RotationStatus = v.InferOutput<typeof rotationStatusSchema>
export type RotationPlan = v.InferOutput<typeof rotationPlanSchema>
export type RotationRun = v.InferOutput<typeof rotationRunSchema>
export type RotationOldKeys = v.InferOutput<typeof rotationOldKeysSchema>
export type KeptKeys = v.InferOutput<typeof keptKeysSchema>
export type RotationRunbook = v.InferOutput<typeof rotationRunbookSchema>
export type RotationRecovery = v.InferOutput<typeof rotationRecoverySchema>
export type RotationVerification = v.InferOutput<typeof rotationVerificationSchema>
export type AuthorityView = v.InferOutput<typeof authoritySchema>
export type CertificateView = v.InferOutput<typeof certificateSchema>
export type EvidenceView = v.InferOutput<typeof evidenceSchema>
export type PhasePlanView = v.InferOutput<typeof phasePlanSchema>
export type StepView = v.InferOutput<typeof stepSchema>
export type NextView = v.InferOutput<typeof nextSchema>
