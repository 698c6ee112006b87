import { expect, test } from 'vitest'
import { capabilities, hasByDefault, whyReadsOnce } from './capabilities.ts'

// Build info in Go's format, as in the output of `go version -m`.

const dep = (version: string): string => `dep\tk8s.io/client-go\t${version}\th1:aaaa=`
const instead = (path: string, version: string): string => `=>\t${path}\t${version}\th1:bbbb=`
const unknown = 'its client-go version is unknown'

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

test.each([
  ['v1.35.4', true],
  ['v1.34.4-vendor.1', false],
  ['v1.100.0', true],
  ['not-said', false],
  [undefined, false],
])('whether a kubelet %s keeps its pods Ready: %s', (version, expected) => {
  expect(hasByDefault(capabilities.kubeletKeepsPodsReady, version)).toBe(expected)
})
