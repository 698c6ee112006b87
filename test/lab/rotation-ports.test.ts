import { SiteExecutor } from '../../src/rotation-io/executor.ts'
import { SiteObserver } from '../../src/rotation-io/observer.ts'
import { systemRandom } from '../../src/system/random.ts'
import { rotationPortsContract } from '../contract/rotation-ports.ts'
import { describeOnCluster, openCluster } from './fixture.ts'
import { labSite } from './rotation-site.ts'

// The contract of the simulated cluster (test/rotation/ports-contract.test.ts), checked against a real one.

describeOnCluster("the rotation's ports", () => {
  rotationPortsContract('a real cluster', async () => {
    const cluster = await openCluster({ controlPlanes: 1, workers: 1 })
    const site = await labSite(cluster)
    return {
      observer: new SiteObserver(site),
      executor: new SiteExecutor({ site, random: systemRandom }),
      await: (work) => work,
      async close() {
        await site.close()
        await cluster.close()
      },
    }
  })
})
