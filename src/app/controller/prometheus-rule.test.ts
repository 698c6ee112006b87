import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { renderControllerMetrics } from '../../output/controller-metrics.ts'
import { watchMetrics } from '../../output/watch-metrics.ts'
import { renderYaml } from '../../output/yaml.ts'
import { rotations } from '../../rotation-io/mirrored-rotations.ts'
import { alertGroups } from './prometheus-rule.ts'

// deploy/prometheus: each alert fires for the series that it is about, and for no others.

const folder = mkdtempSync(join(tmpdir(), 'kcert-alerts-'))
afterAll(() => rmSync(folder, { recursive: true }))

const place = '{kind="secret",namespace="shop",name="web-tls",entry="data[tls.crt]"}'
const year = 31_536_000
const day = 86_400
/** Steps of 5 minutes for three hours. */
const steps = 'x36'

/** The series with which an alert fires and does not fire, three hours after the beginning: the metric → its values. */
const cases: Readonly<Record<string, readonly [firing: Series, quiet: Series]>> = {
  KcertCertificateExpiresSoon: [
    remaining(20 * day, year),
    // A kubelet's certificate of one hour, and one that expired, which is another alert.
    remaining(0.5 * 3600, 3600),
  ],
  KcertCertificateExpired: [remaining(-60, year), remaining(60, year)],
  KcertUnreadableCertificate: one('unreadable_objects{kind="secret"}', 1, 0),
  KcertOldCertificateServed: problem('OTHER_CERTIFICATE_SERVED', 'NOT_TRUSTED'),
  KcertServerUnreachable: problem('UNREACHABLE', 'NOT_TRUSTED'),
  KcertServedCertificateRejected: problem('CERT_EXPIRED', 'OTHER_CERTIFICATE_SERVED'),
  KcertKubeletNotRenewed: [
    { 'kcert_kubelet_late{node="node-1",state="overdue"}': `1${steps}` },
    { 'kcert_kubelet_certificates{state="not-due"}': `1${steps}` },
  ],
  KcertRequestPending: one('pending_oldest_seconds{signer="other"}', 7200, 600),
  KcertCaBundleLacksClusterCa: [
    { 'kcert_ca_bundle_rejected{namespace="shop"}': `1${steps}` },
    { 'kcert_ca_bundles{state="verified"}': `4${steps}` },
  ],
  KcertClusterInfoInvalid: [
    { 'kcert_cluster_info_checks{check="ca",outcome="failed"}': `1${steps}` },
    { 'kcert_cluster_info_checks{check="ca",outcome="ok"}': `1${steps}` },
  ],
  KcertRotationStopped: [rotation('ca', 1), { ...rotation('ca', 0), ...rotation('etcd-ca', 1) }],
  KcertEtcdRotationStopped: [rotation('etcd-ca', 1), rotation('ca', 1)],
  KcertSaKeyRotationStopped: [rotation('service-account-key', 1), rotation('ca', 1)],
  // The time of the test is three hours after 1970.
  KcertScanMissing: [
    { 'kcert_scan_last_success_timestamp_seconds{part="nodes"}': `60${steps}` },
    { 'kcert_scan_last_success_timestamp_seconds{part="nodes"}': '0+300x36' },
  ],
  // Of two replicas, one is not the leader.
  KcertControllerMissing: [
    { 'kcert_controller_leader{pod="a"}': `0${steps}` },
    { 'kcert_controller_leader{pod="a"}': `0${steps}`, 'kcert_controller_leader{pod="b"}': `1${steps}` },
  ],
  KcertPermissionMissing: [
    { 'kcert_controller_missing_permission{verb="list",resource="secrets"}': `1${steps}` },
    { kcert_controller_policy_valid: `1${steps}` },
  ],
  KcertPolicyUnusable: [
    { kcert_controller_policy_valid: `0${steps}` },
    { kcert_controller_policy_valid: `1${steps}` },
  ],
  // A restart of an API server is one or two failures.
  KcertRequestsNotWatched: [
    { kcert_controller_watch_errors_total: '0+3x36' },
    { kcert_controller_watch_errors_total: '0x18 2x17' },
  ],
  KcertRequestLeftPending: [
    { 'kcert_controller_pending_requests{reason="requester"}': `2${steps}` },
    { 'kcert_controller_pending_requests{reason="no-policy"}': `2${steps}` },
  ],
  KcertScanFailed: one('scan_failed{part="secrets"}', 1, 0),
  KcertScanLeftOut: one('scan_left_out{part="secrets"}', 3, 0),
}

type Series = Readonly<Record<string, string>>

function one(metric: string, firing: number, quiet: number): [Series, Series] {
  return [{ [`kcert_${metric}`]: `${firing}${steps}` }, { [`kcert_${metric}`]: `${quiet}${steps}` }]
}

function remaining(seconds: number, lifetime: number): Series {
  return {
    [`kcert_certificate_remaining_seconds${place}`]: `${seconds}${steps}`,
    [`kcert_certificate_lifetime_seconds${place}`]: `${lifetime}${steps}`,
  }
}

function problem(firing: string, quiet: string): [Series, Series] {
  const of = (code: string): Series => ({
    [`kcert_served_problem{kind="kubelet",name="node-1",entry="192.0.2.1:10250",code="${code}"}`]: `1${steps}`,
  })
  return [of(firing), of(quiet)]
}

function rotation(name: string, isOpen: number): Series {
  return {
    [`kcert_rotation_in_progress{rotation="${name}"}`]: `${isOpen}${steps}`,
    [`kcert_rotation_entry_timestamp_seconds{rotation="${name}"}`]: `-100000${steps}`,
  }
}

const rules = alertGroups().flatMap(({ rules: some }) => some)

const ownMetrics = renderControllerMetrics({
  info: { approve: 'builtin', watch: true, watchSecrets: false, namespace: 'kube-system' },
  isLeader: true,
  leaseFailures: 0,
  policy: { isUsable: true, loadedSeconds: 1, failures: 0 },
  pending: new Map([['requester', 1]]),
  decisions: [],
  events: { created: 0, failed: 0 },
  watchFailures: 0,
  missingRights: [{ verb: 'list', resource: 'secrets' }],
  residentBytes: 1,
})

test('each alert has a case, and names only metrics and labels of the table', () => {
  expect(Object.keys(cases).sort()).toEqual(rules.map(({ alert }) => alert).sort())
  for (const { expr, annotations } of rules) {
    const named = [...expr.matchAll(/kcert_(\w+)/g)].flatMap(([, name = '']) => {
      if (!name.startsWith('controller_'))
        return watchMetrics[name as keyof typeof watchMetrics].labels as readonly string[]
      const [, labels] = new RegExp(`^kcert_${name}(\\S*) \\d+$`, 'm').exec(ownMetrics) ?? []
      expect([name, labels]).toEqual([name, expect.any(String)])
      return [...(labels ?? '').matchAll(/(\w+)=/g)].map(([, label = '']) => label)
    })
    for (const [, label] of annotations.summary.matchAll(/\$labels\.(\w+)/g)) expect(named).toContain(label)
  }
})

test('an alert about a rotation names the status command of this rotation', () => {
  for (const [rotation, { command }] of Object.entries(rotations)) {
    const about = rules.filter(({ expr }) => expr.includes(`rotation="${rotation}"`))
    expect(about.map(({ annotations }) => annotations.next)).toEqual([
      expect.stringMatching(new RegExp(`^${command} status\\b`)),
    ])
  }
})

const promtool = [process.env.PROMTOOL ?? 'promtool'].find(
  (name) => spawnSync(name, ['--version']).status === 0,
)
const withPromtool = promtool === undefined ? 'skipped: no promtool (apt-get install prometheus)' : 'promtool'

describe(`deploy/prometheus (${withPromtool})`, () => {
  test.skipIf(promtool === undefined)('the rules are valid', () => {
    const { stdout, status } = spawnSync(promtool!, ['check', 'rules', 'deploy/prometheus/rules.yaml'], {
      encoding: 'utf8',
    })
    expect([status, stdout]).toEqual([0, expect.stringContaining(`${rules.length} rules found`)])
    const { spec } = parse(readFileSync('deploy/prometheus/prometheus-rule.yaml', 'utf8'))
    expect(spec).toEqual(parse(readFileSync('deploy/prometheus/rules.yaml', 'utf8')))
  })

  test.skipIf(promtool === undefined).each(Object.entries(cases))(
    '%s fires, and does not fire',
    (alert, [firing, quiet]) => {
      expect(fires(alert, firing)).toBe(true)
      expect(fires(alert, quiet)).toBe(false)
      // Nothing is known then. Only the alert about a missing controller may fire.
      expect(fires(alert, {})).toBe(alert === 'KcertControllerMissing')
    },
  )

  test.skipIf(promtool === undefined)('an alert about the scan fires with --watch only', () => {
    const started = (watch: boolean): Series => ({
      [`kcert_controller_info{watch="${watch}"}`]: `1${steps}`,
      'kcert_controller_leader{pod="a"}': `1${steps}`,
    })
    expect(fires('KcertScanMissing', started(true))).toBe(true)
    expect(rules.filter(({ alert }) => fires(alert, started(false)))).toEqual([])
  })

  test.skipIf(promtool === undefined).each([
    [
      'approve="policy.yaml",watch="true",watch_secrets="true",lease_namespace="certs"',
      '--approve policy.yaml --watch --watch-secrets -n certs --as system:serviceaccount:certs:kcert-controller',
      'certs',
    ],
    [
      'approve="",watch="true",watch_secrets="false",lease_namespace="kube-system"',
      '--watch -n kube-system --as system:serviceaccount:kube-system:kcert-controller',
      'kube-system',
    ],
    // Any pod that Prometheus scrapes can write these.
    ...[
      'approve="",watch="true",watch_secrets="false",lease_namespace="x; touch INJ #"',
      'approve="",watch="true",watch_secrets="false",lease_namespace="-A"',
      'approve="--kubeconfig=/tmp/x",watch="true",watch_secrets="false",lease_namespace="certs"',
      'approve="$(touch INJ)",watch="true",watch_secrets="false",lease_namespace="certs"',
    ].map((info) => [
      info,
      '--watch -n kube-system --as system:serviceaccount:kube-system:kcert-controller',
      'kube-system',
    ]),
  ])('the commands have the flags and the namespace of the controller: %s', (info, flags, namespace) => {
    const commandOf = (alert: string, labels: object, series: Series): boolean => {
      const { annotations } = rules.find((rule) => rule.alert === alert) ?? { annotations: { summary: '' } }
      const summary = annotations.summary.replace(/\{\{ \$labels\.part \}\}/, 'secrets')
      const next = alert === 'KcertScanFailed' ? `kcert controller check ${flags}` : logsIn(namespace)
      const expected = { exp_labels: labels, exp_annotations: { summary, next } }
      const all = { ...series, [`kcert_controller_info{${info}}`]: `1${steps}` }
      return passes({ eval_time: '3h', alertname: alert, exp_alerts: [expected] }, all)
    }
    const failed = { severity: 'warning', part: 'secrets' }
    expect(commandOf('KcertScanFailed', failed, { 'kcert_scan_failed{part="secrets"}': `1${steps}` })).toBe(
      true,
    )
    expect(commandOf('KcertControllerMissing', { severity: 'critical' }, {})).toBe(true)
  })
})

const logsIn = (namespace: string): string =>
  `kubectl logs -n ${namespace} -l app.kubernetes.io/name=kcert-controller`

/** Returns whether an alert fires. promtool accepts one of both expectations, and must reject the other. */
function fires(alertname: string, series: Series): boolean {
  writeFileSync(join(folder, 'rules.yaml'), renderYaml({ groups: alertGroups() }))
  const isQuiet = passes({ eval_time: '3h', alertname, exp_alerts: [] }, series)
  const { stdout } = lastRun
  if (isQuiet) return false
  expect(stdout).toContain(alertname)
  expect(stdout).toMatch(/got:\s*\[\s*(?:0:)?/)
  return true
}

let lastRun: { status: number | null; stdout: string } = { status: null, stdout: '' }

function passes(alertTest: object, series: Series): boolean {
  const file = join(folder, 'test.yaml')
  writeFileSync(
    file,
    renderYaml({
      rule_files: ['rules.yaml'],
      evaluation_interval: '5m',
      tests: [
        {
          interval: '5m',
          input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
          alert_rule_test: [alertTest],
        },
      ],
    }),
  )
  const { status, stdout, stderr } = spawnSync(promtool!, ['test', 'rules', file], { encoding: 'utf8' })
  lastRun = { status, stdout: stdout + stderr }
  if (status !== 0) expect(lastRun.stdout).toContain('FAILED')
  return status === 0
}
