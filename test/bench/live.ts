import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Contender } from './measure.ts'
import { peer } from './peers.ts'
import type { Suite } from './suite.ts'

const endpoints = 500
const secrets = 20_000

/** Local TLS endpoints, probed in one command, in a loop of openssl, and by a Go program with the same concurrency. */
export function probeSuite(folder: string): Suite {
  const at = serving(join(folder, 'probe'), endpoints, 0)
  const goLoop = peer('goloop')
  if (!goLoop) throw new Error('the bench needs its Go loop: npm run bench:peers')
  const list = readFileSync(join(at, 'endpoints'), 'utf8').trim().split('\n')
  const ca = join(at, 'ca.crt')
  const openssl = `openssl s_client -connect $e -CAfile ${ca} -verify_ip 127.0.0.1 </dev/null >/dev/null 2>&1`
  return {
    title: `${endpoints} local TLS endpoints probed: chain, trust and name of each`,
    baseline: 'Go program, 128 dials at once',
    targets: {},
    contenders: [
      { name: 'Go program, 128 dials at once', command: [goLoop, 'probe', ca, join(at, 'endpoints')] },
      { name: 'kcert probe HOST:PORT…', command: kcert('probe', ...list, '--ca', ca) },
      {
        name: 'openssl s_client, one process an endpoint',
        command: ['sh', '-c', `for e in $(cat ${join(at, 'endpoints')}); do ${openssl} || exit 1; done`],
      },
    ],
    runs: { warmup: 1, min: 5 },
  }
}

/** Secrets of type kubernetes.io/tls, each with its own certificate and key, on the fake API server. */
export function scanSuite(folder: string): Suite {
  const at = serving(join(folder, 'scan'), 0, secrets)
  const kubectl = peer('kubectl')
  const config = join(at, 'admin.conf')
  const scan = 'kcert inspect --cluster'
  const contenders: (Contender | undefined)[] = [
    kubectl === undefined
      ? undefined
      : {
          name: 'kubectl get secrets -A -o json',
          command: [kubectl, '--kubeconfig', config, 'get', 'secrets', '-A', '-o', 'json'],
        },
    { name: scan, command: kcert('inspect', '--cluster', '--kubeconfig', config), exits: [0, 3] },
  ]
  const found = contenders.filter((contender) => contender !== undefined)
  return {
    title: `${secrets.toLocaleString('en')} Secrets of a cluster read, each with a certificate and its key`,
    baseline: found[0]!.name,
    targets: {},
    memoryTargets: { [scan]: 300 },
    contenders: found,
    runs: { warmup: 0, min: 3 },
  }
}

/** One GET in a separate process, with TLS and client certificate, from the same fake API server for both programs. */
export function oneRequestSuite(folder: string): Suite {
  const at = serving(join(folder, 'request'), 0, 0)
  const config = join(at, 'admin.conf')
  const kubectl = peer('kubectl')
  if (!kubectl) throw new Error('the bench needs kubectl: npm run bench:peers')
  const list = '/apis/certificates.k8s.io/v1/certificatesigningrequests?limit=500'
  const baseline = 'kubectl get --raw'
  return {
    title: 'One request to an API server, one process for each run',
    baseline,
    targets: { 'kcert csr list': 1.5 },
    contenders: [
      { name: baseline, command: [kubectl, '--kubeconfig', config, 'get', '--raw', list] },
      { name: 'kcert csr list', command: kcert('csr', 'list', '--kubeconfig', config) },
    ],
    runs: { warmup: 3, min: 20 },
  }
}

function kcert(...args: string[]): string[] {
  return [process.execPath, resolve('bin/run.js'), ...args]
}

/** Starts the servers, which end with this process. Returns the folder when they are ready. */
function serving(folder: string, tlsEndpoints: number, apiSecrets: number): string {
  mkdirSync(folder)
  const words = ['test/bench/live-servers.ts', folder, String(tlsEndpoints), String(apiSecrets)]
  const servers = spawn(process.execPath, words, { stdio: ['ignore', 'inherit', 'inherit'] })
  process.once('exit', () => servers.kill())
  servers.unref()
  // This process blocks while hyperfine runs, so nothing here may depend on events.
  for (let tries = 0; !existsSync(join(folder, 'ready')); tries++) {
    if (tries > 1_200) throw new Error('the servers of the bench were not ready within two minutes')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
  }
  return folder
}
