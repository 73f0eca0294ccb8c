{{ tributary.funnel('campaign') }}
