r"""Files that R 4.2 and a writer of old Excel files made, as text: neither is needed to read them.

The table that R saved, alone as survey.rds, with the number 7 as one.rda, with a second table as several.rda:

    survey <- data.frame(
      id = c("007", "008", "009", "010", "011", "012"),
      town = factor(c("B\u00f6nn", NA, "K\u00f6ln", "K\u00f6ln", "B\u00f6nn", "Aachen")),
      persons = c(1L, NA, 3L, 2L, 5L, 4L),
      income = c(1200.5, NA, NaN, 2300.25, 990, 4100),
      whole = c(10, 20, 30, 40, 50, NA),
      owner = c(TRUE, NA, FALSE, TRUE, FALSE, TRUE),
      remark = c("say \"so\", or not", NA, "two\nlines", "", "NA", "\u20ac"),
      born = as.Date(c("1969-12-31", NA, "2020-02-29", "1960-01-01", "1999-12-31", "2001-09-09")),
      seen = as.POSIXct(c(0.25, NA, -86400, 1e9, 1593599400, 5), origin = "1970-01-01", tz = "Europe/Vienna"),
      here = as.POSIXct(c(0, NA, 86400, 1, 2, 3), origin = "1970-01-01"),
      stringsAsFactors = FALSE)
    survey$big <- structure(5e-324 * c(5, 7, 1, 1, 1, 1), class = "integer64")
    latin <- "caf\xe9"; Encoding(latin) <- "latin1"; survey$latin <- rep(latin, 6)
"""

import base64
import lzma

_STORED = {
    "survey.rds": (
        "{Wp48S^xk6X(HY>0stWa761SMbT8$j-~}fE>s<gW0(=?yuk;-|o|rX$>d^EdO|wN(#=V+779&d3APkfvv^>u^%@#gF!fpFBq"
        "rJ2pmd+;6JPS}NIU0vrgeHH#X*p_?^>ol?TwNV@F>Gp{((_O@^+<Op<w1V#8oRV6?xPomh=C*P{~4`wkq`w`?+OU?bdzby?H"
        "x4PIy{)lreB#%1w<9FPq<EwWAo>ZnT6@(mB_M*hV}GrJX)!eg`^m0ugFi3S_lh6wz6~}K}PrQXu(OlN@uP|EO<74G(w12G+H"
        "P(0y%WA5iG4kx^&|5gbZ9aWixAYFpgmLr{C7Y7KJxnW-dcFRC-dLc&eg=ET+bhbHfb6vg`-P-boiPY$xjvVD9V?_$orN1Y-="
        "5g^U|I*RshN0-a^Q#AAEI!LoOx;h0Mj2}=59(aF<Xkd1r7QfJi)+P6&w1iS*R+^LXtQD)kkR&htq$TCWh9J}*uOb)oNDz~jd"
        "<c$NexsH9B)#}YaAK{Bt?tKwQED5|j2sFI@-R$HNN-P)v<lx@|Lu&?RE@)8!SC>>^A@o)pg-BYGw}BBH@~lP&fE~HCu9KfQ8"
        "K|QMPij5yxvR=}wb2UzB<xvGIw|tm{HBxaKvDo4*Ta+fbufVZkzzhTHgEWIPq4dV`o^IgkB*SYbN~PV?V*B`00Dyps0si8SD"
        "?8oJ}?c70ssI200CKA"
    ),
    "one.rda": (
        "{Wp48S^xk6X(HY>0stWa8~^|S5YJf5;00^~2weav5eHOg5#(-C%AhmFBwo8~oY#v}HxJd)o3a%u2L$-Y2=nRZ6`ksaB**0ny"
        "rcrz59m38;)P!{lOZf6LqOP;@ua?qM{n$AH$@F1(T75oL-z`kB~+gh^F1(Jp6kv8RXk`Wim8F1K2%afmNIUdGBaFuU(p-Q&I"
        "G(-2W40}DI$9+;Q>1e>nqipVV`<@_xoX~MUj66J;QNt`Nnv)7#3i~6tQP<!iIQ<JC>(q7j}?MK!!R(ywBFakbyj|*Ag}97>{"
        "A{lLFjLEHFOc0QP@>3jVqbjk_(T^|Wx0+5k?H_-JPmMB8;|&~Z&arhUH5|Mx0vC-sd_Q>vOhzhR?ThZ}czi%gbqi;@BspzFp"
        "!j}?0lD(SJXx0Y2oexDbDG4}^0|Clci-z3jHU;T(`)4UM5*g7Q1z9;8$ahjlvp?G|u#0CP0EB+anmc}S`6?!nVS+lJuFMnW)"
        "f1IzzM`y`>bb*)N$Dl_c74AjDK&(Z6Lx2lP4umb|yV#PkpZLDkITfOAK3Rksj|f^u9M=8%+m^0u%3{YXWC+r@+(bv8Dp8JMO"
        "IbqdI&wLvB%`S+u=C;WUsb}_T51W<LkazRkVVe6CaQ<GS*U6Y(H^m|H%bTw&<l3NW^cRRQ7pix0c8xMKX?}%@=V>~f%Nb?2r"
        "O;=dcpO>oEQqiPU=Dcw&S=J00E!`?Fs+@z<)~yJ}?c70ssI200CKA"
    ),
    "several.rda": (
        "{Wp48S^xk6X(HY>0stWa8~^|S5YJf5;06E!DO~_55eHOg5#(-C%AhmFBwo8~oY#v}HxJd)o3a%u2L$-Y2=nRZ6`ksaB**0ny"
        "rcrz59m38;)P!{lOZf6LqOP;@ua?qM{n$AH$@F1(T75oL-z`kB~+gh^F1(Jp6kv8RXk`Wim8F1K2%afmNIUdGBaFuU(p-Q&I"
        "G(-2W40}DI$9+;Q>1e>nqipVV`<@_xoX~MUj66J;QNt`Nnv)7#3i~6tQP<!iIQ<JC>(q7j}?MK!!R(ywBFakbyj|*Ag}97>{"
        "A{lLFjLEHFOc0QP@>3jVqbjk_(T^|Wx0+5k?H_-JPmMB8;|&~Z&arhUH5|Mx0vC-sd_Q>vOhzhR?ThZ}czi%gbqi;@BspzFp"
        "!j}?0lD(SJXx0Y2oexDbDG4}^0|Clci-z3jHU;T(`)4UM5*g7Q1z9;8$ahjlvp?G|u#0CP0EB+anmc}S`6?!nVS+lJuFMnW)"
        "f1IzzM`y`>bb*)N$Dl_c74AjDK&(Z6Lx2lP4umb|yV#PkpZLDkITfOAK3Rksj|f^u9M=8%+m^0u%3{YXWC+r@+(bv8Dp8JMO"
        "IbqdI&wLvB%`S+u=C;WUsb}_T51W<LkazRkVVe6CaQ<GS*U6Y(H^m|H%bTw&<l3NW^cRRQ7pix0c8xMKX?}%@=V>~f%NIxvH"
        "J`kxQa(qbHxesx@4)(@g-5pKjM|rt0l_%<2VLdxnzF!XfjWnF!}pUAh~%H00000cLi$Q00F@SfeZiuHkY2TJ}?c70ssI200C"
        "KA"
    ),
    "number.rds": (
        "{Wp48S^xk6X(HY>0stWa761SMbT8$j-~c87Azc700(=?yuk;-|o|rX$>d^EdO|wN(#K8bJ$A=nkRYxvh00000*r|*_00B8C`"
        "i%&SkV2Ua0RR9100CKA"
    ),
    "listed.rds": (
        "{Wp48S^xk6X(HY>0stWa761SMbT8$j-~oF8nq2@a0(=?yuk;-|o|rX$>d^EdO|wN(#=V+76fW92zlq#8N8XIB97ZcA`wpra0"
        "AoSSQcRH}`?@dPFd_d#l5;isI%01i{+5PF%W|X8mCOjBl%8RkS7ICU(XGAI^qq=XGkS1Js7m}ze0<Oi5Izu~vf0Qq?8&&i-7"
        "-74iCKAQ86<oAn*1T`53Q(-GcO!@URW&rgZiw*00000arzex00FWA`~m;~Vlo3}J}?c70ssI200CKA"
    ),
    "square.rds": (
        "{Wp48S^xk6X(HY>0stWa761SMbT8$j-~m<uo?QSe0(=?yuk;-|o|rX$>d^EdO|wN(#=V+76fW92zlq#8N8XIB97ZcA`wpra0"
        "AoSSQcRH}`?@dPFd_d#l5;isI%01i{+5PF%W|W@0ZfAi!)a)ge@me%IfkV*I61!kZ4C#!>pI)!nq2$#$LS{KhB_Z!jY)<8@x"
        "5W<Xld+^df=;bS&(71qT1-n*LWjF$PePpC`>3OrR`Po000004&sX000FiE*8%_lOIV?bJ}?c70ssI200CKA"
    ),
    "empty.rds": (
        "{Wp48S^xk6X(HY>0stWa761SMbT8$j-~gZiRb2oq0(=?yuk;-|o|rX$>d^EdO|wN(#=V+76Z+EdRFV07{|1c<BBW(nWZ0?D{"
        "j;;3H5sSE8h~QBMmyZu8<9M{zA|b~ER?WGD$%BG$jGJw5hZy500000_rq<}00C{G0RR918X3fbJ}?c70ssI200CKA"
    ),
    "native.rds": (
        "{Wp48S^xk6X(HY>0stWa761SMbT8$j-~hA$VO;<$0(=?ypZFa++?ne3$i8j3MX%3#E=n(!j4e0mKv~lUzBn+IRQ~(MnKDvQ&"
        "$k^eG?+Xe!Lq>r8o;W1Syh6r%Nfn42vsZfmTn;c#M*uHh$CAQ_G@7(2I#N76&J_=00000)@T2A00DWm0RR91)oA07J}?c70s"
        "sI200CKA"
    ),
    "old.xls": (
        "{Wp48S^xk9=GL@E0stWa761SMbT8$j;1&M@f?WV;Grk;#Fn3_|q=YI!3><bRg7T4u+=$92y5XR=#sm{*o6VTHX*Crpnc)M|#"
        "puk@^h-b4s3P%T*|5j%FV#XmrK5@>cY#$Aa2quG5BsCaW&p=w%`2#&kvK33jLRL19^cVN7!7pe@YpAhl_+DTtxO8)TRNPt)$"
        "jvGwZ=DKT9_0{g2$JZU%zO6<~VSw4G;M{w;st9r-w<b@Tc+k&|CN&3`S&;8D$H(R&1aqNjQmI@-42SW=uDwNHY6sh9;EXfNc"
        "OLbl@$cbZhJ9^^>CdoLMmi0MdZu|9PuF1+VWRV@bVfpEBsk-Ip@7i__<sr6sDnG%YlEanJG6`Vj0dn*J(C2bBp+akUJ6+<_P"
        "R5lTs3OL*=;1{m9H=^$vIrF>q(aIQ>i)5G<wuFhTq2jXlth#4|xtKCrJoVX7LV6Tq|Cr0Rnur#ICta1c2h$|eeXsHL|)nCH?"
        "vUBE{$);yjh=$bqgpTe05RO1HJ=Fy$v-W0}8%r2r!bAgE2weCx=t?B4mmdbmi5FHt?v-Ln-JtUKdbc3aT$iU!6HT;6lbVUDb"
        "=YEdH*@AJ+)GoZRz9@WD$H&yhVMaMA1jq5Z>x4Ot2x%2zI2)J1aIp3LG9P=eii&+IGRvc4!jkn2`e`PCbzPpa`hiYH5c4UVW"
        "C^8NEg$;nB0jB=#-l<?NVgngTf)X46tBVDECLaN*vz8GL@(-aS)j6^h6L~m*wTNowh$ptFT`hpE2<&GAzG$Y|wt_HJ!uuJiL"
        "mQ2vghls)rKQ>v(03$2!o;K>YZN69yFZicC0}cFaD9an?f|_tL9))}O=??_*6vQ(4emHG0TS5C8xGm&8`o#iL%s00Eu_fGhw"
        "2Atl%FvBYQl0ssI200dcD"
    ),
}


def stored(name):
    """The bytes of one of the files."""
    data = base64.b85decode(_STORED[name])
    return lzma.decompress(data) if name.endswith(".xls") else data
