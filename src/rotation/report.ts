import * as v from 'valibot'
import { timeSchema as time } from '../x509/json-fields.ts'
import { phaseTable } from './phase-table.ts'
import { described, header, maybe, seconds, text, texts } from './schema-parts.ts'

// The JSON contracts of `kcert rotate-ca`. docs/schemas/ is generated from these; the program itself only imports their types.

const hex = v.pipe(text, v.regex(/^[0-9a-f]+$/))
const phaseNumber = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(phaseTable.length))
const risk = described(
  v.picklist(['reads', 'writes', 'restarts', 'no-return']),
  'what running it can cost: nothing, files and objects, processes, or the way back',
)

/** A certificate, and which side of the rotation it stands on. */
const certificateSchema = v.object({
  generation: described(
    v.picklist(['old', 'new', 'bridge', 'other']),
    'the old CA, the new one, the bridge or none of them; of a leaf: by which of them it is signed',
  ),
  subject: described(text, 'RFC 4514'),
  notAfter: maybe(time, 'absent while the certificate is not made'),
  sha256: maybe(hex, 'of the DER; absent while the certificate is not made'),
})

const gapSchema = v.object({
  at: described(text, 'a node, file, object, pod or process'),
  what: described(text, 'what is not so yet'),
})

const refusalSchema = v.object({ what: text, why: text, next: text })

const authoritySchema = v.object({
  ca: v.picklist(['cluster', 'front-proxy']),
  oldCa: certificateSchema,
  newCa: certificateSchema,
  oldPin: described(text, 'kubeadm --discovery-token-ca-cert-hash'),
  newPin: v.optional(text),
  hasBridge: described(v.boolean(), 'the new CA certified by the old one, beside new leaves'),
})

const nextSchema = v.object({ command: text, why: text })

const evidenceSchema = v.object({
  key: described(text, 'what was proven, and where'),
  ok: v.boolean(),
  at: time,
  ageSeconds: seconds,
  detail: text,
})

const runSchema = v.object({
  event: v.picklist(['begun', 'held', 'stopped', 'undone']),
  at: time,
  detail: v.optional(text),
})

const keyFileSchema = v.object({
  node: text,
  path: text,
  ca: maybe(text, 'absent where the key is overwritten already'),
})

const keptKeysSchema = described(
  v.object({
    files: v.array(keyFileSchema),
    encrypted: maybe(
      v.array(v.object({ node: text, path: text })),
      'keys that may be it: only their password tells',
    ),
    archive: text,
    destroy: text,
  }),
  "where the old CA's key still lies after the end, as far as nodes answer, and the commands that end that",
)

export const rotationStatusSchema = v.object({
  ...header('RotationStatus'),
  state: v.picklist(['not-begun', 'under-way', 'finished']),
  position: described(
    v.picklist(['introducing', 'presenting', 'dropping']),
    'read from the cluster: nobody presents the new CA yet; somebody does; the old CA is being dropped',
  ),
  authorities: v.array(authoritySchema),
  next: maybe(nextSchema, 'absent when nothing is left to do'),
  phases: v.array(
    v.object({
      number: phaseNumber,
      id: text,
      title: text,
      risk,
      state: described(
        v.picklist(['holds', 'open', 'later']),
        'later: one that must hold before it does not',
      ),
      gaps: v.array(gapSchema),
      remarks: texts,
      evidence: described(v.array(evidenceSchema), 'the last answer of each probe'),
      lastRun: maybe(runSchema, 'by the journal'),
    }),
  ),
  nodes: v.array(
    v.object({
      name: text,
      isControlPlane: v.boolean(),
      isReady: v.boolean(),
      unreachable: maybe(text, 'why it does not answer'),
      clockSkewSeconds: v.optional(v.number()),
      openPhases: described(v.array(phaseNumber), 'phases with something open on this node'),
    }),
  ),
  blockers: v.array(refusalSchema),
  oldKeys: v.optional(keptKeysSchema),
})

const stepSchema = v.object({
  kind: v.picklist(['write-file', 'patch-object', 'restart', 'roll', 'wait', 'probe', 'ask']),
  what: text,
  at: described(text, 'node or object'),
  lane: maybe(text, 'lanes of one group run side by side'),
  group: v.optional(v.number()),
  changes: maybe(texts, 'lines taken out ("- ") and put in ("+ "); of keys nothing'),
})

const phasePlanSchema = v.object({
  number: phaseNumber,
  title: text,
  risk,
  gaps: v.array(gapSchema),
  steps: v.array(stepSchema),
  remarks: texts,
  estimatedSeconds: seconds,
})

const partySchema = v.object({
  who: described(text, 'a process, kubeconfig or object'),
  where: described(text, 'file or field, and the flag that leads there'),
  certificates: described(v.array(certificateSchema), 'on disk, or in the object'),
  loaded: maybe(v.array(certificateSchema), 'as seen in a live handshake; absent where nobody can ask'),
})

export const rotationPlanSchema = v.object({
  ...header('RotationPlan'),
  scope: described(
    v.picklist(['whole', 'phase']),
    'whole: every phase, on what the ones before it leave; phase: exactly what would be done next',
  ),
  authorities: v.array(authoritySchema),
  verifiers: v.array(
    v.object({
      ...partySchema.entries,
      rereads: described(v.boolean(), 'false: read at the start of the process alone'),
    }),
  ),
  presenters: v.array(partySchema),
  phases: v.array(phasePlanSchema),
  restarts: v.array(v.object({ process: text, phases: v.array(phaseNumber) })),
  rolls: v.array(v.object({ workload: text, phases: v.array(phaseNumber), pods: v.number() })),
  blastRadius: v.object({
    caBundles: described(
      v.array(v.object({ id: text, server: text })),
      'webhooks, APIServices and CRD conversions verified by the old CA',
    ),
    appliedBundles: described(
      texts,
      'objects whose annotation of kubectl apply holds the old CA: the same manifest brings it back',
    ),
    kubeconfigs: v.array(v.object({ id: text, onNode: v.boolean(), client: v.optional(certificateSchema) })),
    joinTokens: described(texts, 'ids of tokens that sign cluster-info'),
    foreign: described(
      v.array(v.object({ presenter: text, leaf: certificateSchema })),
      'certificates of others that the old CA signed: their owners re-issue them',
    ),
    stored: described(
      v.array(v.object({ object: text, what: text, owner: v.optional(text) })),
      'ConfigMaps and Secrets of others that hold the old CA, or a certificate that it signed',
    ),
    storedUnread: described(texts, 'kinds that may not be listed: of these nothing is known'),
    barePods: described(texts, 'pods that nobody would make again'),
    pods: described(v.number(), 'all pods with a service account'),
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
      title: text,
      outcome: v.picklist(['held', 'declined']),
      beganAt: time,
      endedAt: time,
      actions: described(v.number(), 'acts, waits and proofs; 0: it held already'),
      remarks: texts,
    }),
  ),
  next: v.optional(nextSchema),
  oldKeys: v.optional(keptKeysSchema),
})

export const rotationOldKeysSchema = v.object({
  ...header('RotationOldKeys'),
  way: v.picklist(['archive', 'destroy']),
  outcome: described(
    v.picklist(['nothing-left', 'planned', 'declined', 'done', 'incomplete']),
    'incomplete: a node did not answer, and may have more, or a key is encrypted',
  ),
  oldCas: v.array(
    v.object({
      ca: text,
      subject: text,
      keySha256: described(hex, 'of the SubjectPublicKeyInfo'),
    }),
  ),
  files: described(
    v.array(
      v.object({
        ...keyFileSchema.entries,
        sha256: described(hex, 'of the file'),
        state: described(v.picklist(['there', 'removed']), 'when the command ended'),
      }),
    ),
    "in kcert's own folders",
  ),
  archived: described(texts, 'files of this machine, each read back'),
  encrypted: described(
    v.array(v.object({ node: text, path: text, why: text, next: text })),
    "in kcert's own folders and beside CAs: left as they are",
  ),
  unreachable: v.array(v.object({ node: text, why: text })),
})

export const rotationRunbookSchema = v.object({
  ...header('RotationRunbook'),
  phase: phaseNumber,
  title: text,
  folder: text,
  scripts: described(
    v.array(
      v.object({
        order: described(v.number(), 'scripts of one number may run side by side'),
        atOnce: v.number(),
        node: text,
        path: described(text, 'below the folder; its whole folder is carried to the node'),
        acts: described(texts, 'as a plan names them'),
      }),
    ),
    'empty where nothing is to be done on a node before the next command',
  ),
  next: described(nextSchema, 'once the scripts have been run'),
  back: maybe(text, 'the command that writes scripts which take these back'),
})

export const rotationRecoverySchema = v.object({
  ...header('RotationRecovery'),
  outcome: v.picklist(['nothing-expired', 'planned', 'declined', 'recovered']),
  renewed: described(
    v.array(v.object({ subject: text, expired: time, until: time })),
    'CAs that had expired; name and key stay',
  ),
  files: v.array(v.object({ node: text, path: text, what: texts })),
  restarts: described(texts, 'nodes whose static pods and kubelet start anew'),
  foreign: described(
    v.array(v.object({ node: text, path: text, subject: text })),
    'certificates that have ended and that no CA on these nodes signed',
  ),
})

export const rotationVerificationSchema = v.object({
  ...header('RotationVerification'),
  holds: v.boolean(),
  authorities: v.array(authoritySchema),
  checks: v.array(
    v.object({
      id: text,
      what: text,
      ok: v.boolean(),
      checked: described(v.number(), 'how many things were looked at'),
      findings: v.array(v.object({ ...gapSchema.entries, next: v.optional(text) })),
      accepted: maybe(v.array(gapSchema), 'what would be a finding, and was accepted by --waive'),
    }),
  ),
  handshakes: v.array(v.object({ presenter: text, chain: v.array(certificateSchema), at: time })),
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
