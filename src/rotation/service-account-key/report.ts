import * as v from 'valibot'
import { time } from '../../errors/json-fields.ts'
import { described, header, optionalField, seconds, text, texts } from '../schema-parts.ts'

// The JSON contract of `kcert rotate-sa-key plan`. docs/schemas/ServiceAccountKeyPlan.json is generated from these schemas.

const keyIds = described(texts, 'key IDs (`kid`), in order')
const keyFile = v.object({
  path: text,
  keyIds,
  unread: optionalField(text, 'why the file could not be read; then keyIds is empty'),
})

export const serviceAccountKeyPlanSchema = v.object({
  ...header('ServiceAccountKeyPlan'),
  reason: v.picklist(['routine', 'compromise']),
  keyId: optionalField(text, 'of the key that signs now; absent if API servers sign with different keys'),
  apiServers: v.array(
    v.object({
      node: text,
      issuers: described(texts, '--service-account-issuer: the first is in new tokens'),
      served: described(texts, 'key IDs of /openid/v1/jwks of this API server'),
      servedUnread: optionalField(text, 'why it could not be read; then served is empty'),
      keyFiles: described(v.array(keyFile), '--service-account-key-file'),
      signingKey: optionalField(keyFile, '--service-account-signing-key-file'),
      signingEndpoint: optionalField(text, '--service-account-signing-endpoint'),
      shutdownDelay: optionalField(text, '--shutdown-delay-duration'),
    }),
  ),
  controllerManagers: v.array(
    v.object({
      node: text,
      signingKey: optionalField(keyFile, '--service-account-private-key-file'),
    }),
  ),
  tokens: described(
    v.array(
      v.object({
        kind: v.picklist(['Secret', 'ConfigMap', 'file']),
        location: described(text, 'the object with its field, or NODE:PATH'),
        keyId: v.optional(text),
        subject: text,
        expirationTimestamp: optionalField(time, 'absent: it never expires'),
        owner: optionalField(text, 'the writer of the object'),
      }),
    ),
    'unexpired tokens in Secrets, ConfigMaps and files of nodes. No command renews them',
  ),
  mountedTokens: described(
    v.array(
      v.object({
        node: text,
        keys: v.array(v.object({ keyId: v.optional(text), tokens: v.number() })),
        unread: optionalField(text, 'why the tokens of the node could not be read'),
      }),
    ),
    'tokens that kubelets mounted into pods, counted by key',
  ),
  audiences: described(
    v.array(v.object({ audience: text, tokens: v.number() })),
    'audiences of mounted tokens that no API server accepts: other programs verify these tokens',
  ),
  externalVerifiers: v.object({
    mayExist: v.boolean(),
    why: texts,
    maxAgeSeconds: described(seconds, 'how long they may keep /openid/v1/jwks'),
  }),
  steps: v.array(
    v.object({
      title: text,
      phases: described(v.array(v.number()), 'phases of kcert rotate-sa-key that do this'),
      actions: texts,
      check: text,
      waitSeconds: seconds,
      estimatedSeconds: seconds,
    }),
  ),
  restarts: v.array(
    v.object({
      node: text,
      kubeApiserver: v.number(),
      kubeControllerManager: v.number(),
      kubelet: v.number(),
    }),
  ),
  notes: texts,
  blockers: v.array(v.object({ what: text, why: text, next: text })),
  estimatedSeconds: described(seconds, 'with the waiting time'),
})

export type ServiceAccountKeyPlan = v.InferOutput<typeof serviceAccountKeyPlanSchema>
