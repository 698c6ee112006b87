import { rotationPortsContract } from '../contract/rotation-ports.ts'
import { SimulatedExecutor } from '../fakes/simulated-cluster-ports.ts'
import { Scene } from './scene.ts'

rotationPortsContract('the simulated cluster', async () => {
  const { cluster, clients, observer } = new Scene({ controlPlanes: 1, workers: 1 })
  return {
    observer,
    executor: new SimulatedExecutor(cluster, clients),
    await: (work) => cluster.time.until(work),
    close: async () => {},
  }
})
