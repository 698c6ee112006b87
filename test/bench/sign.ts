import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { systemClock } from '../../src/system/clock.ts'
import type { Contender } from './measure.ts'
import { peer } from './peers.ts'
import { type RequestFolder, requestFolder } from './requests.ts'
import type { Suite } from './suite.ts'

const count = 10_000

/** 10,000 P-256 requests in one file: read, verified, signed, and their serial numbers written to disk. */
export function signSuite(folder: string): Suite {
  const requests = requestFolder(join(folder, 'sign'), count, systemClock())
  const goLoop = peer('goloop')
  if (!goLoop) throw new Error('the bench needs its Go loop: npm run bench:peers')
  const at = dirname(requests.ca)
  const goFiles = [requests.ca, requests.caKey, requests.all, join(at, 'go.jsonl'), join(at, 'go.crt')]
  return {
    title: `${count.toLocaleString('en')} P-256 requests signed by a local CA, the issuance log on the disk before the output`,
    baseline: 'Go loop over crypto/x509, signing',
    targets: { 'kcert ca sign FILE': 3 },
    contenders: [
      { name: 'Go loop over crypto/x509, signing', command: [goLoop, 'sign', ...goFiles] },
      kcertSign('kcert ca sign FILE', requests, requests.all),
      kcertSign('kcert ca sign FILES', requests, requests.each),
    ],
    runs: { warmup: 1, min: 5 },
  }
}

/** A twentieth of them, for tools that take one request each: a process for each file, in a shell loop. */
export function signOneProcessAFileSuite(folder: string): Suite {
  const requests = requestFolder(join(folder, 'sign-some'), count / 20, systemClock())
  const { ca, caKey, each } = requests
  const config = join(dirname(ca), 'config.json')
  const usages = ['digital signature', 'key encipherment', 'server auth']
  writeFileSync(config, JSON.stringify({ signing: { default: { usages, expiry: '8760h' } } }))
  const [cfssl, step] = [peer('cfssl'), peer('step')]
  const loop = (command: string): string[] => [
    'sh',
    '-c',
    `for f in ${each}; do ${command} >/dev/null 2>&1 || exit 1; done`,
  ]
  const contenders: (Contender | undefined)[] = [
    kcertSign('kcert ca sign FILES', requests, each),
    {
      name: 'openssl x509 -req, one process a file',
      command: loop(`openssl x509 -req -in $f -CA ${ca} -CAkey ${caKey} -days 365 -copy_extensions copy`),
    },
    cfssl === undefined
      ? undefined
      : {
          name: 'cfssl sign, one process a file',
          command: loop(`${cfssl} sign -ca ${ca} -ca-key ${caKey} -config ${config} $f`),
        },
    step === undefined
      ? undefined
      : {
          name: 'step certificate sign, one process a file',
          command: loop(`${step} certificate sign $f ${ca} ${caKey}`),
        },
  ]
  return {
    title: `${(count / 20).toLocaleString('en')} requests by tools that sign one each`,
    baseline: 'kcert ca sign FILES',
    targets: {},
    contenders: contenders.filter((contender) => contender !== undefined),
    runs: { warmup: 0, min: 3 },
  }
}

// Each run starts with an empty issuance log, because later runs would otherwise read the entries of earlier ones.
function kcertSign(name: string, { ca, caKey }: RequestFolder, requests: string): Contender {
  const at = dirname(ca)
  const issuanceLog = join(at, 'kcert.jsonl')
  const flags = `--ca ${ca} --ca-key ${caKey} --profile server --issuance-log ${issuanceLog} --out ${join(at, 'kcert.crt')} --force`
  return {
    name,
    command: [
      'sh',
      '-c',
      `rm -f ${issuanceLog}; exec ${process.execPath} bin/run.js ca sign ${requests} ${flags}`,
    ],
  }
}
