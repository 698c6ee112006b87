import { alerts } from './rules/alerts.ts'
import { credentials } from './rules/credentials.ts'
import { files } from './rules/files.ts'
import { handshakes } from './rules/handshake.ts'
import { joining } from './rules/joining.ts'
import { kubeconfigs } from './rules/kubeconfigs.ts'
import { names } from './rules/names.ts'
import { protocol } from './rules/protocol.ts'
import { requests } from './rules/requests.ts'
import { rights } from './rules/rights.ts'
import { signatures } from './rules/signatures.ts'
import { time } from './rules/time.ts'
import { tokens } from './rules/tokens.ts'
import { trust } from './rules/trust.ts'
import { readTable } from './table.ts'

const tables = [
  trust,
  time,
  names,
  alerts,
  tokens,
  kubeconfigs,
  rights,
  credentials,
  files,
  signatures,
  joining,
  requests,
  protocol,
  handshakes,
]

/** All errors that kcert explains. If two rules have the same phrases, the earlier one is tried first. */
export const rules = readTable(tables.join(''))
