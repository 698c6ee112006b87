import { once } from 'node:events'
import { auditLine } from '../scripts/audit-events.ts'

// Prints an audit log of about so many GB: `node test/bench/audit-log.ts 10 | kcert audit -`. Its 50,000 different events are repeated,
// because creating each of them would take longer than reading it. Each has another credential, over one day.

const [, , gigabytes = '1'] = process.argv
const different = 50_000
const startMs = Date.parse('2026-11-25T00:00:00Z')

function eventOf(index: number): string {
  const at = new Date(startMs + (index * 86_400_000) / different).toISOString()
  const uid = `0b6f7b1c-1f54-4a3a-9d5c-${index.toString(16).padStart(12, '0')}`
  if (index % 10 === 0)
    return auditLine({
      ...{ username: `system:node:w${index}`, at },
      credential: `X509SHA256=${index.toString(16).padStart(64, '0')}`,
    })
  const extra = {
    'authentication.kubernetes.io/node-name': [`w${index % 1000}`],
    'authentication.kubernetes.io/node-uid': [uid],
    'authentication.kubernetes.io/pod-name': [`cart-${index}`],
    'authentication.kubernetes.io/pod-uid': [uid],
  }
  return auditLine({ username: 'system:serviceaccount:shop:cart', credential: `JTI=${uid}`, extra, at })
}

const block = Buffer.from(Array.from({ length: different }, (_, index) => eventOf(index)).join(''))
for (let left = Number(gigabytes) * 1e9; left > 0; left -= block.length)
  if (!process.stdout.write(block)) await once(process.stdout, 'drain')
