import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { capabilities, whyEarlier, whyReadsOnce } from './capabilities.ts'

// Build info in Go's format, as in the output of `go version -m`.

const dep = (version: string): string => `dep\tk8s.io/client-go\t${version}\th1:aaaa=`
const instead = (path: string, version: string): string => `=>\t${path}\t${version}\th1:bbbb=`
const unknown = 'its client-go version is unknown'
const turnedOn = 'ChangeContainerStatusOnKubeletRestart is turned on'
const both = 'ChangeContainerStatusOnKubeletRestart=false,ChangeContainerStatusOnKubeletRestart=true'

function why(build: readonly string[], settings: readonly string[] = [], minor?: number): string | undefined {
  return whyReadsOnce({ build, settings }, minor)
}

test.for<[string, readonly string[], string | undefined]>([
  ['client-go 0.36', [dep('v0.36.0')], undefined],
  ['a later client-go', [dep('v0.37.2')], undefined],
  ['client-go 0.35', [dep('v0.35.4')], 'its client-go is v0.35.4'],
  ['a preview of client-go 0.36', [dep('v0.36.0-rc.1')], 'its client-go is v0.36.0-rc.1'],
  ['client-go 11 of 2019', [dep('v11.0.0+incompatible')], 'its client-go is v11.0.0+incompatible'],
  [
    'a commit of client-go',
    [dep('v0.0.0-20260101000000-0123456789ab')],
    'its client-go is v0.0.0-20260101000000-0123456789ab',
  ],
  ['no client-go', ['dep\tgolang.org/x/net\tv0.50.0\th1:cccc='], 'its program does not use client-go'],
  ['nothing', [], 'its program does not use client-go'],
  [
    'an older one that replaces it',
    [dep('v0.36.3'), instead('k8s.io/client-go', 'v0.29.3')],
    'its client-go is v0.29.3',
  ],
  ['a newer one that replaces it', [dep('v0.29.3'), instead('k8s.io/client-go', 'v0.36.3')], undefined],
  ['a copy by another name', [dep('v0.36.3'), instead('example.com/client-go', 'v0.36.3')], unknown],
  ['a program in a program', [dep('v0.36.3'), '--', dep('v0.30.1')], 'its client-go is v0.30.1'],
  [
    'another module before it',
    ['dep\tk8s.io/client-go-extras\tv0.36.3\th1:dddd='],
    'its program does not use client-go',
  ],
  ['a version that no version is', [dep('v1\u202e')], unknown],
])('a program with %s', ([, build, expected]) => {
  expect(why(build)).toBe(expected)
})

test.for<[string, number | undefined, string | undefined]>([
  ['of 1.36', 36, undefined],
  ['of 1.35', 35, 'its client-go is v0.0.0'],
  ['of no known release', undefined, 'its client-go is v0.0.0'],
])("one of Kubernetes' own programs %s", ([, minor, expected]) => {
  expect(why([dep('v0.0.0'), '=>\t./staging/src/k8s.io/client-go\t(devel)'], [], minor)).toBe(expected)
  expect(why([dep('v0.36.3')], [], minor)).toBe(undefined)
})

test.for<[string, boolean]>([
  ['KUBE_FEATURE_ClientsAllowCARotation=false', true],
  ['KUBE_FEATURE_ClientsAllowCARotation=0', true],
  ['KUBE_FEATURE_ClientsAllowCARotation=', true],
  ['KUBE_FEATURE_ClientsAllowCARotation=True', false],
  ['--feature-gates=A=true,ClientsAllowCARotation=false', true],
  ['--feature-gates=ClientsAllowCARotation=false,ClientsAllowCARotation=true', true],
  ['--feature-gates=ClientsAllowCARotation=true', false],
  ['--feature-gates=A=false', false],
  ['--feature-gates=AllBeta=false', true],
  ['--feature-gates=AllBeta=false,ClientsAllowCARotation=true', false],
  ['  ClientsAllowCARotation: false', true],
  ['{"featureGates":{"ClientsAllowCARotation":false}}', true],
])('detects whether %s turns the feature gate off: %s', ([setting, isOff]) => {
  expect(why([dep('v0.36.3')], [setting])).toBe(isOff ? 'ClientsAllowCARotation is turned off' : undefined)
})

test.for<[string, string | undefined, string | undefined, string | undefined]>([
  ['of 1.35', 'v1.35.4', '', undefined],
  ['of a later version', 'v1.100.0', '', undefined],
  ['of 1.34', 'v1.34.4-vendor.1', '', 'v1.34.4-vendor.1'],
  ['whose version is not one', 'not-said', '', 'unknown version'],
  ['with an odd version', 'v1.9999.0', '', 'unknown version'],
  ['without a version', undefined, '', 'unknown version'],
  ['with unreadable gates', 'v1.36.3', undefined, 'unknown feature gates'],
  ['of 1.34 with unreadable gates', 'v1.34.4', undefined, 'v1.34.4'],
  ['that turns the gate on', 'v1.36.3', 'A=false,ChangeContainerStatusOnKubeletRestart=true', turnedOn],
  ['that turns the gate on and off', 'v1.36.3', both, turnedOn],
  ['with a value that Go rejects', 'v1.36.3', 'ChangeContainerStatusOnKubeletRestart=maybe', turnedOn],
  ['that turns the gate off', 'v1.36.3', 'ChangeContainerStatusOnKubeletRestart=false', undefined],
  ['that turns a similar gate on', 'v1.36.3', 'NoChangeContainerStatusOnKubeletRestart=true', undefined],
  ['that turns all beta gates off', 'v1.36.3', 'AllBeta=false', undefined],
])('why a kubelet %s does not keep its pods Ready', ([, version, gates, expected]) => {
  expect(whyEarlier(capabilities.kubeletKeepsPodsReady, version, gates)).toBe(expected)
})

test('docs/decisions/0012 has a row for each capability, with its version, feature gate and decision', () => {
  const page = readFileSync('docs/decisions/0012-capabilities.md', 'utf8')
  const rows = page.split('\n').filter((line) => line.startsWith('| '))
  const documented = rows.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, 5)
      .map((cell) => cell.trim()),
  )
  expect(documented).toEqual(
    Object.values(capabilities).map(({ what, since, decision, ...rest }) => [
      what,
      typeof since === 'number' ? `1.${since}` : since,
      'gate' in rest ? `\`${rest.gate.name}\`` : '',
      decision,
    ]),
  )
})
