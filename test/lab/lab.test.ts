import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { down, up } from './cluster.ts'
import { run, sleep, until } from './command.ts'
import { type Cluster, describeOnCluster, openCluster, withCluster } from './fixture.ts'
import { list, type Pod } from './kubectl.ts'
import { namespacesFound } from './network.ts'
import { specName } from './spec.ts'
import { folders, paths, readRecord } from './state.ts'
import { silentSteps } from './steps.ts'

describeOnCluster('a cluster of three control planes, a worker and add-ons', () => {
  let cluster: Cluster & { close(): Promise<void> }

  beforeAll(async () => {
    cluster = await openCluster({ controlPlanes: 3, workers: 1, addons: true })
  })
  afterAll(() => cluster?.close())

  test('every node is Ready and serves a certificate of the cluster CA', async () => {
    const { stdout } = await cluster.kubectl(['get', 'nodes', '-o', 'name'])
    expect(stdout.trim().split('\n')).toEqual(['node/cp1', 'node/cp2', 'node/cp3', 'node/w1'])
    await cluster.kubectl(['wait', '--for=condition=Ready', 'nodes', '--all', '--timeout=120s'])
    const ca = cluster.hostPath('cp1', '/etc/kubernetes/pki/ca.crt')
    for (const { address } of cluster.nodes()) {
      const served = await run([
        'openssl',
        's_client',
        '-connect',
        `${address}:10250`,
        '-CAfile',
        ca,
        '-verify_return_error',
        '-brief',
      ])
      expect(served.stderr).toContain('Verification: OK')
    }
  })

  test('pods of every owner reach the API over new connections, in Go, Node and Python', async () => {
    const pods = await cluster.countingPods()
    expect(pods).toHaveLength(15)
    for (const { name, url } of pods) {
      const observe = async () => {
        const answer = await fetch(url, { signal: AbortSignal.timeout(30_000) })
        return (await answer.json()) as { attempts: number; failures: number }
      }
      let before = { attempts: 0, failures: 0 }
      // On a busy machine, a call may time out. The test requires that calls succeed and no more failures occur.
      await until(
        `${name} counts calls and no failure`,
        180_000,
        async () => {
          const last = before
          before = await observe()
          return before.attempts > last.attempts && before.failures === last.failures
        },
        2_000,
      )
    }
    await until('the job has succeeded', 180_000, async () => {
      const path = 'jsonpath={.status.succeeded}'
      const { stdout } = await cluster.kubectl(['-n', 'lab', 'get', 'job', 'ten-requests', '-o', path])
      return stdout === '1'
    })
  })

  test('logs and exec work on every node', async () => {
    const pods = await list<Pod>(['pods', '-n', 'lab', '-l', 'app=client-ds'])
    expect(pods.map(({ spec }) => spec.nodeName).sort()).toEqual(['cp1', 'cp2', 'cp3', 'w1'])
    for (const { metadata } of pods) {
      await cluster.kubectl(['-n', 'lab', 'logs', metadata.name])
      const answer = await cluster.kubectl(['-n', 'lab', 'exec', metadata.name, '--', '/client', 'ok'])
      expect(answer.stdout).toBe('ok\n')
    }
  })

  test('names resolve, the aggregated API responds, and the webhook decides', async () => {
    const name = ['-n', 'lab', 'exec', 'deploy/client-node', '--', '/usr/bin/node', '-e']
    await until('the name of the API resolves', 120_000, async () => {
      const lookup = await cluster.kubectl([
        ...name,
        "require('dns').lookup('kubernetes.default.svc',(e,a)=>console.log(e??a))",
      ])
      return lookup.stdout === '10.96.0.1\n'
    })
    await until('metrics of every node', 300_000, async () => {
      const { stdout } = await cluster.kubectl(['get', '--raw', '/apis/metrics.k8s.io/v1beta1/nodes'])
      return JSON.parse(stdout).items.length === 4
    })
    const create = ['create', '--dry-run=server', '-f', '-']
    const map = (refuse: string) =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'x', namespace: 'lab', labels: { 'lab.local/refuse': refuse } },
      })
    expect((await cluster.kubectl(create, { input: map('false') })).code).toBe(0)
    const refused = await cluster.kubectl(create, { input: map('true'), mayFail: true })
    expect(refused.stderr).toContain('labelled lab.local/refuse')
  })

  test('ssh and nsenter give a root shell, where systemctl restarts the kubelet', async () => {
    for (const enter of [['ssh', '-F', cluster.sshConfig, 'w1'], cluster.enter('w1')]) {
      const before = await run([...enter, 'systemctl', 'show', '-p', 'MainPID', '--value', 'kubelet'])
      await run([...enter, 'systemctl', 'restart', 'kubelet'])
      const after = await run([...enter, 'systemctl', 'show', '-p', 'MainPID', '--value', 'kubelet'])
      expect(Number(after.stdout)).toBeGreaterThan(0)
      expect(after.stdout).not.toBe(before.stdout)
      expect((await run([...enter, 'systemctl', 'is-active', 'kubelet'])).stdout).toBe('active\n')
      expect((await run([...enter, 'hostname'])).stdout).toBe('w1\n')
    }
  })

  test('the prober sees no failure in an unchanged cluster', async () => {
    const counting = await list<Pod>(['pods', '-n', 'lab', '-l', 'lab.local/counts=yes'])
    expect(counting.length).toBeGreaterThanOrEqual(15)
    // {old, both} × {old-cert, token} × {3 API servers, load balancer}, logs and exec of 4 nodes through each, a counter per pod
    const cells = 2 * 2 * 4 + 2 * 4 * 4 + counting.length
    // A pause of the whole machine for some seconds also appears as a failure, but not one of the cluster.
    await until('ten seconds are without a failure', 300_000, async () => {
      const prober = await cluster.probe()
      await sleep(10_000)
      const verdict = await prober.stop([
        // The kubelet of w1 just restarted, and returns 404 and 500 until its runtime check passes.
        { kind: 'logs', target: 'w1', allow: ['ok', 'http'] },
        { kind: 'exec', target: 'w1', allow: ['ok', 'http'] },
      ])
      for (const sample of verdict.unexpected) process.stderr.write(`${JSON.stringify(sample)}\n`)
      expect(verdict.unexpected).toEqual([])
      expect(verdict.cells).toHaveLength(cells)
      return true
    })
  })

  test('a worker joins and is removed', async () => {
    await cluster.join('w2')
    expect(cluster.nodes().map(({ name }) => name)).toContain('w2')
    await cluster.remove('w2')
    const { stdout } = await cluster.kubectl(['get', 'nodes', '-o', 'name'])
    expect(stdout).not.toContain('w2')
  })

  test('restore brings back saved objects, files and keys', async () => {
    const caBefore = readFileSync(cluster.hostPath('cp1', '/etc/kubernetes/pki/ca.crt'), 'utf8')
    await cluster.kubectl(['-n', 'default', 'create', 'configmap', 'before-save'])
    await cluster.save('lab-test')
    await cluster.kubectl(['-n', 'default', 'create', 'configmap', 'after-save'])
    await cluster.onNode('cp1', ['rm', '-r', '/etc/kubernetes/pki'])
    // The limit: it should take 60 s and must not take 120 s. Other load on the machine may slow one of three runs.
    const timesMs: number[] = []
    do {
      const begun = performance.now()
      await cluster.restore('lab-test')
      timesMs.push(performance.now() - begun)
    } while (timesMs.at(-1)! >= 120_000 && timesMs.length < 3)
    expect(Math.min(...timesMs)).toBeLessThan(120_000)
    expect(readFileSync(cluster.hostPath('cp1', '/etc/kubernetes/pki/ca.crt'), 'utf8')).toBe(caBefore)
    const { stdout } = await cluster.kubectl(['-n', 'default', 'get', 'configmaps', '-o', 'name'])
    expect(stdout).toContain('configmap/before-save')
    expect(stdout).not.toContain('configmap/after-save')
  })
})

describeOnCluster('a cluster of one node with ECDSA keys and all flags', () => {
  test('has P-256 keys and the flags that kubeadm does not set', async () => {
    await withCluster({ keys: 'ECDSA-P256', allFlags: true }, async (cluster) => {
      const shown = await run([
        'openssl',
        'x509',
        '-in',
        cluster.hostPath('cp1', '/etc/kubernetes/pki/apiserver.crt'),
        '-noout',
        '-text',
      ])
      expect(shown.stdout).toContain('ASN1 OID: prime256v1')
      const manifest = (name: string) =>
        readFileSync(cluster.hostPath('cp1', `/etc/kubernetes/manifests/${name}.yaml`), 'utf8')
      expect(manifest('kube-apiserver')).toContain(
        '--kubelet-certificate-authority=/etc/kubernetes/pki/ca.crt',
      )
      expect(manifest('kube-apiserver')).toContain('--shutdown-delay-duration=10s')
      expect(manifest('kube-scheduler')).toContain('--client-ca-file=/etc/kubernetes/pki/ca.crt')
      // The API server now verifies the kubelet. Reading logs proves that this works.
      await cluster.kubectl(['-n', 'kube-system', 'logs', 'kube-scheduler-cp1', '--tail=1'])
    })
  })
})

describeOnCluster('a cluster of one control plane and a worker without kubeadm', () => {
  test('starts from units, serves add-ons, and can be restored', async () => {
    await withCluster({ flavour: 'plain', workers: 1, addons: true }, async (cluster) => {
      expect((await cluster.onNode('cp1', ['ls', '-A', '/etc/kubernetes'])).stdout).not.toMatch(
        /manifests|admin\.conf/,
      )
      const unit = await cluster.onNode('w1', ['systemctl', 'cat', 'kubelet'])
      expect(unit.stdout).toContain('--kubeconfig=/etc/kubernetes/kubelet.kubeconfig')
      await cluster.kubectl(['-n', 'lab', 'logs', 'client-sts-0'])
      await cluster.restore(`base-${specName(cluster.spec)}`)
      await cluster.kubectl(['-n', 'lab', 'exec', 'client-sts-0', '--', '/plain-client', 'ok'])
    })
  })
})

describeOnCluster('the service manager of the nodes', () => {
  test('parses units as systemd does', async () => {
    await run(['go', 'test', './systemctl'], {
      cwd: join(folders.source, 'go'),
      env: { ...(process.env as Record<string, string>), CGO_ENABLED: '0' },
    })
  })
})

describeOnCluster('an up that is killed', () => {
  test('does not prevent the next up, and down leaves nothing behind', async () => {
    await down(silentSteps)
    const child = spawn(process.execPath, [join(folders.source, 'cli.ts'), 'up'], {
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
    })
    const ended = new Promise((resolve) => child.once('close', resolve))
    await until(
      'it is at kubeadm init',
      300_000,
      async () => existsSync(join(paths.node('cp1'), 'etc/kubernetes/pki/ca.crt')),
      50,
    )
    process.kill(-child.pid!, 'SIGKILL') // its whole group, kubeadm's parent included
    await ended
    expect(readRecord()?.phase).toBe('starting')

    await up({}, silentSteps)
    expect(readRecord()?.phase).toBe('ready')
    await down(silentSteps)
    expect(await namespacesFound()).toEqual([])
    expect((await run(['ip', 'link', 'show', 'kcertlab0'], { mayFail: true })).code).not.toBe(0)
    expect((await run(['find', '/sys/fs/cgroup', '-name', 'kcert-lab'])).stdout).toBe('')
    expect((await run(['grep', '-c', folders.state, '/proc/mounts'], { mayFail: true })).stdout.trim()).toBe(
      '0',
    )
  })
})
