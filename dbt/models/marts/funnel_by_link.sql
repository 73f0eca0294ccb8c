{{ tributary.funnel('l.link_id') }}
