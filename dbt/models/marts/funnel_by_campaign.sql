{{ tributary.funnel('l.campaign') }}
