/**
 * While advice is being tried out, the fake API server stores nothing, counts nothing and injects no fault. Sessions wait for the
 * end.
 */
export const rehearsal = {
  isOn: false,
  running: Promise.resolve(),

  async during(act: () => Promise<void>): Promise<void> {
    this.isOn = true
    const done = act().finally(() => {
      this.isOn = false
    })
    this.running = done.catch(() => {})
    await done
  },
}
