/** More than a pool has connections, and few enough that nobody waits for one so long that they are refused. */
const AT_ONCE = 50

/** Does the work for each item, many at once, however slow the machine. Returns the results in the order of the items. */
export async function inTurns<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  const left = [...items.entries()].toReversed()
  async function worker(): Promise<void> {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const [place, item] = next
      results[place] = await work(item)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
  return results
}
