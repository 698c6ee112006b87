import type { Rule } from './rule.ts'
import { alertRules } from './rules/alerts.ts'
import { credentialRules } from './rules/credentials.ts'
import { fileRules } from './rules/files.ts'
import { handshakeRules } from './rules/handshake.ts'
import { joiningRules } from './rules/joining.ts'
import { kubeconfigRules } from './rules/kubeconfigs.ts'
import { nameRules } from './rules/names.ts'
import { protocolRules } from './rules/protocol.ts'
import { requestRules } from './rules/requests.ts'
import { rightsRules } from './rules/rights.ts'
import { signatureRules } from './rules/signatures.ts'
import { timeRules } from './rules/time.ts'
import { tokenRules } from './rules/tokens.ts'
import { trustRules } from './rules/trust.ts'

/** Every error that kcert explains. Where two rules have the same words, the earlier is asked first. */
export const rules: readonly Rule[] = [
  ...trustRules,
  ...timeRules,
  ...nameRules,
  ...alertRules,
  ...tokenRules,
  ...kubeconfigRules,
  ...rightsRules,
  ...credentialRules,
  ...fileRules,
  ...signatureRules,
  ...joiningRules,
  ...requestRules,
  ...protocolRules,
  ...handshakeRules,
]
