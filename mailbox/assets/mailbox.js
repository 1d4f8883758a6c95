// The pages work without this: it only keeps the list fresh and asks before everything is deleted.

document.addEventListener('submit', (event) => {
  const question = event.target.dataset.confirm
  if (question && !confirm(question)) event.preventDefault()
})

async function refresh() {
  const list = document.querySelector('main[data-latest]')
  if (!list || document.hidden) return
  const { Latest, Messages, Unread } = await (await fetch('/api/v1/info')).json()
  if (list.dataset.latest === `${Latest}-${Messages}-${Unread}`) return
  const page = await (await fetch(location.href)).text()
  const fresh = new DOMParser().parseFromString(page, 'text/html')
  document.title = fresh.title
  list.replaceWith(fresh.querySelector('main'))
}

setInterval(() => {
  // A mailbox that is being restarted answers again soon.
  refresh().catch(() => undefined)
}, 2000)
