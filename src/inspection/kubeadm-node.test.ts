import { describe, expect, test } from 'vitest'
import { inspect, inspectNode, readerOf, sourcesOf, troubles } from '../../test/pki/inspected.ts'
import { type Algorithm, controlPlaneTree, type NodeFiles, workerTree } from '../../test/pki/kubeadm-tree.ts'

const madeAt = new Date('2026-06-01T08:00:00Z')
const now = new Date('2026-11-21T09:00:00Z')

function without(files: NodeFiles, ...paths: string[]): NodeFiles {
  return new Map([...files].filter(([path]) => !paths.some((one) => path.startsWith(one))))
}

describe.each<Algorithm>(['ECDSA', 'RSA'])('a healthy control plane with %s keys', (algorithm) => {
  const { files } = controlPlaneTree({ madeAt, algorithm })

  test('reports no warning or critical problem, and super-admin.conf as information', async () => {
    const outcome = await inspectNode(now, { files })
    expect(troubles(outcome)).toEqual([])
    const masters = outcome.report.problems.filter(({ code }) => code === 'SYSTEM_MASTERS')
    expect(masters).toMatchObject([{ severity: 'info', source: '/etc/kubernetes/super-admin.conf' }])
    expect(outcome.report.missing).toEqual([])
  })

  test('shows the role of each file in the table', async () => {
    const { report } = await inspectNode(now, { files })
    const roles = report.certificates.map(
      ({ source, role }) => `${source.slice(source.lastIndexOf('/') + 1)}: ${role}`,
    )
    expect(roles).toEqual([
      'admin.conf: cluster CA',
      'admin.conf: admin.conf',
      'controller-manager.conf: cluster CA',
      'controller-manager.conf: controller-manager.conf',
      'kubelet.conf: cluster CA',
      'kubelet.conf: kubelet.conf',
      'apiserver-etcd-client.crt: apiserver-etcd-client',
      'apiserver-kubelet-client.crt: apiserver-kubelet-client',
      'apiserver.crt: apiserver',
      'ca.crt: ca',
      'ca.crt: etcd-ca',
      'healthcheck-client.crt: etcd-healthcheck-client',
      'peer.crt: etcd-peer',
      'server.crt: etcd-server',
      'front-proxy-ca.crt: front-proxy-ca',
      'front-proxy-client.crt: front-proxy-client',
      'scheduler.conf: cluster CA',
      'scheduler.conf: scheduler.conf',
      'super-admin.conf: cluster CA',
      'super-admin.conf: super-admin.conf',
      'kubelet-client-2024-06-01-08-00-00.pem: kubelet-client, replaced',
      'kubelet-client-current.pem: kubelet-client',
      'kubelet.crt: kubelet-serving, self-signed',
      'kubelet.crt: kubelet-serving, self-signed CA',
    ])
  })

  test('finds the issuer and the key of every certificate', async () => {
    const { report } = await inspectNode(now, { files })
    for (const { source, entry, issuerFound, key, isCa } of report.certificates) {
      expect({ source, entry, issuerFound }).toMatchObject({
        issuerFound: { fingerprintSha256: expect.any(String) },
      })
      // The kubelet discards the key of its own serving CA immediately.
      if (!source.endsWith('kubelet.crt') || !isCa)
        expect({ source, entry, key }).toMatchObject({ key: { matches: true } })
    }
    const sa = report.keys.filter(({ role }) => role === 'sa')
    expect(sa.map(({ kind, matches }) => [kind, matches.map(({ source }) => source)])).toEqual([
      ['private', ['/etc/kubernetes/pki/sa.pub']],
      ['public', ['/etc/kubernetes/pki/sa.key']],
    ])
  })

  test('reports no problem for a copy in any folder, of etc/kubernetes alone, or of pki alone', async () => {
    const etc = { files, folders: ['/etc/kubernetes'], copiedTo: '/backup/cp1' }
    expect(troubles(await inspectNode(now, { files, copiedTo: '/backup/cp1' }))).toEqual([])
    expect(troubles(await inspect(now, sourcesOf(etc)))).toEqual([])
    expect(
      troubles(await inspectNode(now, { files, folders: ['/etc/kubernetes/pki'], copiedTo: '/x' })),
    ).toEqual([])
    const flat = new Map([...files].map(([path, file]) => [path.replace('/etc/kubernetes/pki', '/k'), file]))
    const outcome = await inspectNode(now, { files: flat, folders: ['/k'], copiedTo: '/tmp' })
    expect(troubles(outcome)).toEqual([])
    expect(outcome.report.certificates.map(({ role }) => role)).toContain('etcd-server')
  })
})

describe('a control plane', () => {
  const { files } = controlPlaneTree({ madeAt })

  test('with external etcd has no missing files', async () => {
    const outcome = await inspectNode(now, { files: controlPlaneTree({ madeAt, etcd: 'external' }).files })
    expect([troubles(outcome), outcome.report.missing]).toEqual([[], []])
  })

  test('that joined later has no super-admin.conf and no missing files', async () => {
    const outcome = await inspectNode(now, {
      files: controlPlaneTree({ madeAt, hasSuperAdmin: false }).files,
    })
    expect([troubles(outcome), outcome.report.missing]).toEqual([[], []])
  })

  test('with an external CA has no ca.key and no missing files', async () => {
    const outcome = await inspectNode(now, {
      files: without(files, '/etc/kubernetes/pki/ca.key', '/etc/kubernetes/pki/front-proxy-ca.key'),
    })
    expect([troubles(outcome), outcome.report.missing]).toEqual([[], []])
  })

  test('reports missing files and the command that creates them', async () => {
    const lost = [
      '/etc/kubernetes/pki/apiserver.crt',
      '/etc/kubernetes/pki/etcd/peer.key',
      '/etc/kubernetes/pki/front-proxy-client.crt',
      '/etc/kubernetes/pki/front-proxy-client.key',
      '/etc/kubernetes/scheduler.conf',
      '/etc/kubernetes/pki/sa.pub',
    ]
    const { report } = await inspectNode(now, { files: without(files, ...lost), copiedTo: '/backup' })
    expect(report.missing.map(({ source, role }) => `${source} ${role}`).sort()).toEqual([
      '/backup/etc/kubernetes/pki/apiserver.crt apiserver',
      '/backup/etc/kubernetes/pki/etcd/peer.key etcd-peer key',
      '/backup/etc/kubernetes/pki/front-proxy-client.crt front-proxy-client',
      '/backup/etc/kubernetes/pki/sa.pub sa public key',
      '/backup/etc/kubernetes/scheduler.conf scheduler.conf',
    ])
    const next = report.problems
      .filter(({ code }) => code === 'KUBEADM_FILE_MISSING')
      .map((problem) => problem.next)
    // kubeadm stops at a key without its certificate, so the key is moved aside first.
    expect(next).toContain(
      `old=$(mktemp -d /var/tmp/kubernetes-old-XXXXXX) && mv /etc/kubernetes/pki/apiserver.key "$old" && kubeadm init phase certs apiserver && crictl ps -q --name '^kube-apiserver$' | xargs -r crictl stop --timeout 30`,
    )
    // mv fails for a file that does not exist, and kubeadm would not run.
    expect(next).toContain(
      "kubeadm init phase certs front-proxy-client && crictl ps -q --name '^kube-apiserver$' | xargs -r crictl stop --timeout 30",
    )
    expect(next).toContain(
      "kubeadm init phase kubeconfig scheduler && crictl ps -q --name '^kube-scheduler$' | xargs -r crictl stop --timeout 30",
    )
  })

  test('has no missing files below a link to a folder that was read under another name', async () => {
    const elsewhere = new Map(
      [...files].map(([path, file]) => [path.replace('/etc/kubernetes/pki', '/data/pki'), file]),
    )
    const folder = '/etc/kubernetes/pki'
    const outcome = await inspect(
      now,
      [
        ...sourcesOf({ files: elsewhere, folders: ['/data', '/etc'] }).map((one) => ({ ...one, root: '' })),
        {
          name: folder,
          reason: 'seen-before',
          detail: '',
          root: '',
          isFolder: true,
          file: { path: folder, linkTarget: '../../data/pki' },
        },
      ],
      { readReferencedFile: readerOf(files) },
    )
    expect([troubles(outcome), outcome.report.missing]).toEqual([[], []])
  })

  test('has no missing files below a folder without read permission', async () => {
    const outcome = await inspect(now, [
      ...sourcesOf({ files: without(files, '/etc/kubernetes/pki/etcd/'), folders: ['/etc/kubernetes/pki'] }),
      {
        name: '/etc/kubernetes/pki/etcd',
        reason: 'permission',
        detail: 'EACCES',
        root: '/etc/kubernetes/pki',
        file: { path: '/etc/kubernetes/pki/etcd' },
      },
    ])
    expect(outcome.report.missing).toEqual([])
  })

  test('without read permission for its keys has no problem', async () => {
    const key = '/etc/kubernetes/pki/apiserver.key'
    const outcome = await inspect(now, [
      ...sourcesOf({ files: without(files, key), folders: ['/etc/kubernetes/pki'] }),
      { name: key, reason: 'permission', detail: 'EACCES', root: '/etc/kubernetes/pki', file: { path: key } },
    ])
    expect(troubles(outcome)).toEqual([])
    expect(outcome.report.missing).toEqual([])
  })
})

describe('a host of an external etcd, as kubeadm leaves it', () => {
  const whole = controlPlaneTree({ madeAt }).files
  const pki = '/etc/kubernetes/pki'
  const files: NodeFiles = new Map(
    [...whole].filter(([path]) => /^\/etc\/kubernetes\/pki\/(?:etcd\/|apiserver-etcd-client\.)/.test(path)),
  )

  test('has no problem and no missing files', async () => {
    const outcome = await inspectNode(now, { files })
    expect([troubles(outcome), outcome.report.missing]).toEqual([[], []])
    const kept = without(files, `${pki}/apiserver-etcd-client`)
    const { report } = await inspectNode(now, { files: kept })
    expect(report.missing).toEqual([])
  })

  test('reports missing etcd files', async () => {
    const { report } = await inspectNode(now, { files: without(files, `${pki}/etcd/peer`) })
    expect(report.missing).toEqual([{ source: `${pki}/etcd/peer.crt`, role: 'etcd-peer' }])
  })

  test.each(['/backup/etcd', '/tmp/of-cp1'])(
    'recognizes the roles in a copy of the etcd folder alone at %s',
    async (copy) => {
      const copied = new Map([...files].map(([path, file]) => [path.replace(`${pki}/etcd`, copy), file]))
      const { report } = await inspectNode(now, { files: copied, folders: [copy] })
      expect(report.certificates.map(({ role }) => role)).toEqual([
        'etcd-ca',
        'etcd-healthcheck-client',
        'etcd-peer',
        'etcd-server',
      ])
      expect(report.missing).toEqual([])
    },
  )
})

describe('a missing file', () => {
  const { files } = controlPlaneTree({ madeAt })
  const missing = async (path: string) => {
    const { report } = await inspectNode(now, { files: without(files, path) })
    return report.problems.find(({ code }) => code === 'KUBEADM_FILE_MISSING')!
  }

  test.each(['ca.crt', 'apiserver.key', 'apiserver.crt', 'sa.key', 'etcd/server.crt'])(
    'is critical if a component does not start without it: %s',
    async (name) => {
      expect(await missing(`/etc/kubernetes/pki/${name}`)).toMatchObject({ severity: 'critical' })
    },
  )

  test('is a warning for a file that only administrators use: admin.conf', async () => {
    expect(await missing('/etc/kubernetes/admin.conf')).toMatchObject({ severity: 'warning' })
  })

  test('is reported as empty if an empty file exists, as after a full disk', async () => {
    const path = '/etc/kubernetes/controller-manager.conf'
    const emptied = new Map(files).set(path, { ...files.get(path)!, bytes: Buffer.alloc(0) })
    const { report } = await inspectNode(now, { files: emptied })
    expect(report.problems.find(({ code }) => code === 'KUBEADM_FILE_MISSING')).toMatchObject({
      severity: 'critical',
      message: 'the file exists but contains no kubeconfig',
    })
    expect((await missing(path)).message).toBe('controller-manager.conf is missing')
  })

  test('sa.pub is created again from sa.key, and nothing becomes invalid', async () => {
    expect(await missing('/etc/kubernetes/pki/sa.pub')).toMatchObject({
      severity: 'critical',
      next: 'openssl pkey -in /etc/kubernetes/pki/sa.key -pubout -out /etc/kubernetes/pki/sa.pub',
    })
  })
})

describe('service account keys', () => {
  const { files } = controlPlaneTree({ madeAt, algorithm: 'RSA' })
  const path = '/etc/kubernetes/pki/sa.pub'
  const other = controlPlaneTree({ madeAt, algorithm: 'ECDSA' }).files.get(path)!
  const own = files.get(path)!
  const withPublic = (bytes: Uint8Array) => ({
    files: new Map([...files, [path, { ...own, bytes }] as const]),
  })

  test('that are not a pair are critical, because every token is rejected', async () => {
    const outcome = await inspectNode(now, withPublic(other.bytes))
    expect(troubles(outcome)).toEqual(['KEY_MISMATCH /etc/kubernetes/pki/sa.key'])
    expect(outcome.report.problems[0]).toMatchObject({
      severity: 'critical',
      message: `${path} is not its public key: this API server rejects the service account tokens that it signs`,
    })
  })

  test('from before and after their rotation may both be in sa.pub', async () => {
    const both = Buffer.concat([other.bytes, own.bytes])
    expect(troubles(await inspectNode(now, withPublic(both)))).toEqual([])
  })
})

describe('a worker', () => {
  test('has no problem and no missing files', async () => {
    const outcome = await inspectNode(now, { files: workerTree({ madeAt, nodeName: 'w1' }).files })
    expect([troubles(outcome), outcome.report.missing]).toEqual([[], []])
  })

  test("with 24-hour certificates has no problem until the kubelet's renewal is overdue", async () => {
    const { files } = workerTree({ madeAt, nodeName: 'w1', kubeletHours: 24 })
    for (const hours of [0, 12, 17, 20, 21.4]) {
      const outcome = await inspectNode(new Date(madeAt.getTime() + hours * 3_600_000), { files })
      expect([hours, troubles(outcome)]).toEqual([hours, []])
    }
  })

  test('is overdue if its kubelet has not renewed at 90 % of the lifetime', async () => {
    const { files } = workerTree({ madeAt, nodeName: 'w1', kubeletHours: 24 })
    const outcome = await inspectNode(new Date(madeAt.getTime() + 21.9 * 3_600_000), { files })
    expect(troubles(outcome)).toContain('CERT_EXPIRING /var/lib/kubelet/pki/kubelet-client-current.pem')
    expect(outcome.report.problems[0]!.next).toContain('journalctl -u kubelet')
  })

  test('shows when the kubelet will renew: between 70 and 90 % of the lifetime', async () => {
    const { files } = workerTree({ madeAt, nodeName: 'w1', kubeletHours: 100 })
    const { report } = await inspectNode(madeAt, { files })
    const current = report.certificates.find(({ source }) => source.endsWith('current.pem'))!
    expect(current).toMatchObject({
      notBefore: '2026-06-01T07:55:00Z',
      notAfter: '2026-06-05T11:55:00Z',
      kubeletRotation: { earliest: '2026-06-04T05:55:00Z', latest: '2026-06-05T01:55:00Z' },
    })
  })
})

describe("the kubelet's links", () => {
  const { files } = workerTree({ madeAt, nodeName: 'w1' })
  const folder = '/var/lib/kubelet/pki'
  const link = `${folder}/kubelet-client-current.pem`
  const target = `${folder}/kubelet-client-2026-06-01-08-00-00.pem`

  test('count with their target as one certificate', async () => {
    const { report } = await inspectNode(now, { files, folders: [folder] })
    expect(report.certificates.map(({ source }) => source)).not.toContain(target)
  })

  test('are critical on the node and a warning in a copy if replaced by a regular file', async () => {
    const { linkTarget: _, ...regular } = files.get(link)!
    const changed = new Map([...files, [link, regular] as const])
    const problem = async (copiedTo: string) =>
      (await inspectNode(now, { files: changed, folders: [folder], copiedTo })).report.problems.find(
        ({ code }) => code === 'KUBELET_CURRENT_NOT_A_LINK',
      )
    expect(await problem('')).toMatchObject({ severity: 'critical', source: link })
    expect(await problem('/backup')).toMatchObject({ severity: 'warning' })
  })

  test('are critical if the target does not exist', async () => {
    const outcome = await inspect(now, [
      ...sourcesOf({ files: without(files, link, target), folders: [folder] }),
      {
        name: link,
        reason: 'dangling-link',
        detail: `points to ${target}, which does not exist`,
        root: folder,
        file: { path: link, linkTarget: target },
      },
    ])
    expect(troubles(outcome)).toEqual([`KUBELET_CURRENT_DANGLES ${link}`])
    expect(outcome.report.problems[0]!.message).toBe(`points to ${target}, which does not exist`)
  })

  test('are no problem in a copy if the target is in the same folder', async () => {
    const copy = '/backup/pki'
    const outcome = await inspect(now, [
      {
        name: `${copy}/kubelet-client-2026-06-01-08-00-00.pem`,
        root: copy,
        bytes: files.get(target)!.bytes,
        file: { path: `${copy}/kubelet-client-2026-06-01-08-00-00.pem`, mode: 0o600 },
      },
      {
        name: `${copy}/kubelet-client-current.pem`,
        reason: 'dangling-link',
        detail: target,
        root: copy,
        file: { path: `${copy}/kubelet-client-current.pem`, linkTarget: target },
      },
    ])
    expect(troubles(outcome)).toEqual([])
    expect(outcome.report.certificates).toMatchObject([{ role: 'kubelet-client' }])
  })

  test('are reported if they point to themselves, and the newest file is not called replaced', async () => {
    const { report } = await inspect(now, [
      ...sourcesOf({ files: without(files, link), folders: [folder] }),
      {
        name: link,
        reason: 'dangling-link',
        detail: 'points to kubelet-client-current.pem, and the links form a loop',
        root: folder,
        file: { path: link, linkTarget: 'kubelet-client-current.pem' },
      },
    ])
    expect(report.problems.find(({ code }) => code === 'KUBELET_CURRENT_DANGLES')!.message).toBe(
      'points to kubelet-client-current.pem, and the links form a loop',
    )
    expect(report.certificates.find(({ source }) => source === target)!.role).toBe('kubelet-client')
  })

  test('if replaced by a regular file, leave an old dated file as history', async () => {
    const { linkTarget: _, ...regular } = files.get(link)!
    const changed = new Map([...without(files, target), [link, regular] as const])
    const outcome = await inspectNode(now, { files: changed, folders: [folder] })
    expect(troubles(outcome)).toEqual([`KUBELET_CURRENT_NOT_A_LINK ${link}`])
    expect(outcome.report.certificates.filter(({ isReplaced }) => isReplaced)).toHaveLength(1)
    // If the copy follows links, current and the newest file contain the same certificate.
    const both = await inspectNode(now, { files: new Map([...files, [link, regular]]), folders: [folder] })
    expect(both.report.certificates.map(({ source, role }) => [source, role])).toContainEqual([
      target,
      'kubelet-client',
    ])
  })

  test('list a replaced file, but do not count it elsewhere', async () => {
    const { report } = await inspectNode(now, { files, folders: [folder] })
    const old = report.certificates.filter(({ isReplaced }) => isReplaced)
    expect(old).toMatchObject([{ role: 'kubelet-client, replaced', status: 'expired' }])
    expect(report.problems).toMatchObject([
      { code: 'CERT_EXPIRED', severity: 'info', source: old[0]!.source },
    ])
    expect(report.summary).toMatchObject({
      certificates: 4,
      ok: 3,
      expired: 0,
      nextExpiry: '2027-06-01T07:00:00Z',
    })
  })

  test('are reported as missing if there are none', async () => {
    const { report } = await inspectNode(now, { files: without(files, link), folders: [folder] })
    expect(report.missing).toEqual([{ source: link, role: 'kubelet-client' }])
  })
})
