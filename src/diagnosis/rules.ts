import { alerts } from './rules/alerts.ts'
import { credentials } from './rules/credentials.ts'
import { files } from './rules/files.ts'
import { handshakes } from './rules/handshake.ts'
import { joining } from './rules/joining.ts'
import { names } from './rules/names.ts'
import { trust } from './rules/trust.ts'
import { readTable } from './table.ts'

const tables = [trust, names, alerts, credentials, files, joining, handshakes]

/** All errors that kcert explains. If two rules have the same phrases, the earlier one is tried first. */
export const rules = readTable(tables.join(''))
