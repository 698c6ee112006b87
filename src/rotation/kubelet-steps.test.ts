import { expect, test } from 'vitest'
import { kubeletsAtOnce } from './kubelet-steps.ts'
import type { NodePicture } from './picture.ts'

const nodes = (...versions: readonly string[]): readonly NodePicture[] =>
  versions.map((kubeletVersion, index) => ({
    name: `n${index}`,
    isControlPlane: false,
    isReady: true,
    kubeletVersion,
    layout: 'kubeadm',
  }))

test.each([
  [['v1.35.4', 'v1.37.2'], 4],
  [['v1.36.3', 'v1.34.4'], 1],
  [['v1.33.13'], 1],
  [['v1.100.0'], 4],
  [['v1.36.3', 'not-said'], 1],
  [['v1.36.3', ''], 1],
])(
  'with kubelets %j, %i restart at the same time: before 1.35 a restart makes pods not Ready',
  (versions, expected) => {
    expect(kubeletsAtOnce({ nodes: nodes(...versions) } as never, { atOnce: 4 })).toBe(expected)
  },
)
