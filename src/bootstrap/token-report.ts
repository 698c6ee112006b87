import * as v from 'valibot'
import { given } from '../errors/given.ts'
import { rfc3339 } from '../pki/rfc3339.ts'
import * as json from '../x509/json-fields.ts'
import { checkLineSchema } from './check-line.ts'
import type { TokenFacts } from './token-secret.ts'

// The JSON contract of `kcert token`. Only CreatedToken contains the secret part of a token.

const tokenFields = {
  id: json.text('public part of the token'),
  description: v.optional(v.string()),
  expiration: v.optional(v.pipe(v.string(), v.isoTimestamp(), v.description('absent: it never expires'))),
  usages: v.array(v.picklist(['signing', 'authentication'])),
  groups: json.described(json.texts, 'besides system:bootstrappers'),
}

const tokenSchema = v.object({
  ...tokenFields,
  state: json.described(
    v.picklist(['valid', 'expired', 'invalid']),
    'invalid: the API server or the signer ignores it',
  ),
  faults: json.objects({ id: v.string(), detail: v.string() }),
})

export const tokenListSchema = v.object({
  ...json.header('TokenList'),
  generatedAt: v.pipe(v.string(), v.isoTimestamp()),
  tokens: v.array(tokenSchema),
})

export const createdTokenSchema = v.object({
  ...json.header('CreatedToken'),
  outcome: v.picklist(['created', 'would-create']),
  ...tokenFields,
  token: json.optionalText('SECRET: the complete token; absent with --out and --dry-run'),
  joinCommand: json.optionalText('SECRET: contains the token'),
  server: v.optional(v.string()),
  pins: json.texts,
  file: json.optionalText('file with the secret'),
  notices: json.texts,
})

export const deletedTokensSchema = v.object({
  ...json.header('DeletedTokens'),
  tokens: json.objects({
    id: v.string(),
    outcome: v.picklist(['deleted', 'would-delete', 'not-found', 'changed']),
  }),
})

export const tokenCheckSchema = v.object({
  ...json.header('TokenCheck'),
  token: v.optional(tokenSchema),
  verdict: v.picklist(['ok', 'failed', 'unknown']),
  checks: v.array(checkLineSchema),
})

export type TokenReport = v.InferOutput<typeof tokenSchema>
export type TokenList = v.InferOutput<typeof tokenListSchema>
export type CreatedToken = v.InferOutput<typeof createdTokenSchema>
export type DeletedTokens = v.InferOutput<typeof deletedTokensSchema>
export type TokenCheck = v.InferOutput<typeof tokenCheckSchema>

/** Returns the report fields of a token. */
export function tokenReport({
  id,
  description,
  expiration,
  usages,
  groups,
  faults,
}: TokenFacts): TokenReport {
  const isOver = ({ id: fault }: { id: string }): boolean =>
    fault === 'expired' || fault === 'expiration-unreadable'
  return {
    id,
    ...given({ description, expiration: expiration && rfc3339(expiration) }),
    usages: [...usages],
    groups: [...groups],
    state: faults.length === 0 ? 'valid' : faults.every(isOver) ? 'expired' : 'invalid',
    faults: faults.map(({ id, detail }) => ({ id, detail })),
  }
}
