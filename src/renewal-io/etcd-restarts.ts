/** The node access that a restart of etcd members needs. */
export interface EtcdMembers {
  /** Also false if the member's health cannot be read. */
  isHealthy(node: string): Promise<boolean>
  /** Returns when a new process runs, which need not be healthy yet. */
  restart(node: string): Promise<void>
  /** Returns when the member is healthy. Throws after a timeout. */
  awaitHealthy(node: string): Promise<void>
}

/**
 * Restarts etcd members one after the other, so that a cluster with a quorum keeps it. Unhealthy members come first. Each restart
 * waits for the member while enough others are healthy for it to recover. If most are unhealthy, none can become healthy before
 * most have started, so the wait for all of them comes at the end. `all` are the members of the cluster, restarted or not;
 * `unseen` is the number of further members that may exist.
 */
export async function restartMembers(
  toRestart: readonly string[],
  all: readonly string[],
  members: EtcdMembers,
  unseen = 0,
): Promise<void> {
  const quorum = Math.floor((all.length + unseen) / 2) + 1
  const wellNow = async (nodes: readonly string[]): Promise<string[]> => {
    const answers = await Promise.all(nodes.map((node) => members.isHealthy(node)))
    return nodes.filter((_, index) => answers[index])
  }
  const well = await wellNow(toRestart)
  const ordered = [...toRestart.filter((node) => !well.includes(node)), ...well]
  for (const node of ordered) {
    // Checked before the restart: if this member was the leader, the others elect a new one right afterwards and none is healthy
    // meanwhile.
    const others = await wellNow(all.filter((other) => other !== node))
    await members.restart(node)
    if (others.length + 1 >= quorum) await members.awaitHealthy(node)
  }
  for (const node of ordered) await members.awaitHealthy(node)
}
