/** While advice is tried out, the fake API server stores nothing, counts nothing and meets no fault. Sessions wait for its end. */
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
