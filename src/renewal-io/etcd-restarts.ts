/** What a restart of etcd's members needs of the nodes. */
export interface EtcdMembers {
  /** False too where no one can ask it. */
  isHealthy(node: string): Promise<boolean>
  /** Comes back when a new process runs, which need not be well yet. */
  restart(node: string): Promise<void>
  /** Comes back when it is well. Throws when that takes too long. */
  awaitHealthy(node: string): Promise<void>
}

/**
 * Starts members of etcd again, one after the other, so that a cluster which has its quorum keeps it: who is not well first, and each is
 * waited for while enough others are well for it to become so. Where most are not, no one can become well before most have started,
 * so all are waited for in the end. `all` are the members of the cluster, those that are not to be restarted with them; `unseen`
 * is how many more there may be.
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
    // Asked before: where it led them, the others elect a leader right afterwards, and none is well meanwhile.
    const others = await wellNow(all.filter((other) => other !== node))
    await members.restart(node)
    if (others.length + 1 >= quorum) await members.awaitHealthy(node)
  }
  for (const node of ordered) await members.awaitHealthy(node)
}
