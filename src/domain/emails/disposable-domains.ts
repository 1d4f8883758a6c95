/**
 * Well-known domains of short-lived addresses; their subdomains count too. New ones appear every day, so an address
 * that is not found here can still be disposable.
 */
const DISPOSABLE_DOMAINS: ReadonlySet<string> = new Set(
  `0-mail.com 10mail.org 10minutemail.com 10minutemail.net 1secmail.com 1secmail.net 1secmail.org 20minutemail.com
  33mail.com anonaddy.me anonbox.net burnermail.io byom.de chacuo.net crazymailing.com deadaddress.com
  discard.email discardmail.com discardmail.de dispostable.com dropmail.me emailondeck.com emailtemporario.com.br
  eyepaste.com fakeinbox.com fakemail.net fakemailgenerator.com filzmail.com getairmail.com getnada.com
  grr.la guerrillamail.biz guerrillamail.com guerrillamail.de guerrillamail.info guerrillamail.net guerrillamail.org
  guerrillamailblock.com harakirimail.com inboxbear.com inboxkitten.com incognitomail.org jetable.org kasmail.com
  linshiyouxiang.net luxusmail.org mail-temp.com mail-temporaire.fr mail.tm mailcatch.com maildrop.cc mailexpire.com
  mailinator.com mailinator.net mailinator2.com mailnesia.com mailnull.com mailpoof.com mailsac.com mailtemp.info
  minuteinbox.com mintemail.com moakt.com mohmal.com mt2015.com mytemp.email mytrashmail.com nada.email
  one-time.email onetimemail.org pokemail.net sharklasers.com shitmail.me sneakemail.com spam4.me spambog.com spambox.us
  spamex.com spamgourmet.com spamhole.com superrito.com teleworm.us temp-mail.io temp-mail.org tempail.com tempinbox.com
  tempmail.de tempmail.dev tempmail.net tempmail.plus tempmailaddress.com tempmailo.com tempr.email throwam.com
  throwaway.email throwawaymail.com tmail.ws tmailor.com tmpmail.net tmpmail.org trash-mail.com trashmail.com
  trashmail.de trashmail.me trashmail.net trashmail.ws trbvm.com wegwerfemail.de wegwerfmail.de wegwerfmail.net
  wegwerfmail.org yopmail.com yopmail.fr yopmail.net zeroinbox.org`
    .split(/\s+/)
    .filter(Boolean),
)

/** Whether an ASCII host name is a disposable domain or a subdomain of one. */
export function isDisposable(domain: string): boolean {
  const labels = domain.split('.')
  return labels.some((_, from) => DISPOSABLE_DOMAINS.has(labels.slice(from).join('.')))
}
