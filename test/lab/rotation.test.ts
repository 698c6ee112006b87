import { expect, test } from 'vitest'
import { describeOnCluster, withCluster } from './fixture.ts'
import { issueAdministrator } from './prober.ts'
import { answersToOldCertificate, holdersOf, oldCaOf, staticPods } from './rotation-aftermath.ts'
import { describeEvidence, rotateUnderWatch } from './rotation-evidence.ts'
import { RotationOperator, waiversOfLab } from './rotation-operator.ts'
import { onAllNodes } from './spec.ts'
import { minorOfDay } from './today.ts'
import { withoutLoneTimeouts } from './verdict.ts'

// The purpose of kcert rotate-ca: one command replaces both CAs of a real cluster with three control planes, without a failure
// for clients that follow the rules. The prober opens a new connection every 500 ms for each trust and each credential.

describeOnCluster('kcert rotate-ca --all', () => {
  test('no client that follows the rules fails, and the old CA is gone', async () => {
    const kubernetes = onAllNodes(minorOfDay())
    const request = { controlPlanes: 3, workers: 1, addons: true, kubernetes }
    await withCluster(request, async (cluster) => {
      const definitions = staticPods(cluster)
      const oldCa = oldCaOf(cluster)
      const oldClient = await issueAdministrator(cluster.spec)
      const operator = await RotationOperator.open(cluster)
      try {
        const evidence = await rotateUnderWatch(cluster, operator, ['--all', ...waiversOfLab])
        process.stderr.write(describeEvidence(evidence))
        const { verdict, phases, restarted, notReadySeconds } = evidence
        // CI shares its machine. The rehearsals of the matrix allow no timeout at all.
        const { failures, slow } = withoutLoneTimeouts(verdict.unexpected)
        expect(failures.slice(0, 20)).toEqual([])
        expect(slow.length).toBeLessThanOrEqual(3)
        expect(verdict.samples).toBeGreaterThan(20_000)
        expect(phases.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
        expect(restarted).toEqual([])
        expect(notReadySeconds).toBe(0)
        expect(staticPods(cluster)).toEqual(definitions)
        expect(await holdersOf(cluster, oldCa)).toEqual([])
        const answers = await answersToOldCertificate(cluster, oldClient)
        expect(Object.entries(answers).filter(([, status]) => status !== '401')).toEqual([])
      } finally {
        operator.close()
      }
    })
  }, 1_800_000)
})
